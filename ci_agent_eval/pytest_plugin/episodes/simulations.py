"""Simulations in tests: the fixture `simulation`, and scenario files as parametrized episodes."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.authoring.scenarios import ARGUMENT, ATTRIBUTE
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE
from ci_agent_eval.pytest_plugin.collection.detection import NAME as MARKER
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths

if TYPE_CHECKING:
    from ci_agent_eval.authoring.scenarios.scenario import Scenario
    from ci_agent_eval.authoring.simulation import Simulation
    from ci_agent_eval.recording import EpisodeRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


@pytest.fixture
def _agent_eval_run(request: pytest.FixtureRequest) -> Callable[[Awaitable[Any]], Any]:
    """Run an awaitable to completion on the loop that the episodes of the process share."""
    from ci_agent_eval.pytest_plugin.concurrency.session_loop import SessionLoop  # noqa: PLC0415 - inert until used

    return SessionLoop.find(request.config).run_awaitable


@pytest.fixture
def simulation(episode: EpisodeRecorder) -> Simulation:
    """Let simulated users talk to an app, in this test's episode and its budget of turns."""
    from ci_agent_eval.authoring.simulation import Simulation  # noqa: PLC0415 - inert until used

    return Simulation(episode)


def parametrize_scenarios(metafunc: pytest.Metafunc) -> None:
    """Create an episode for each scenario of a test that `@scenarios` decorates."""
    names: tuple[str, ...] = getattr(metafunc.function, ATTRIBUTE, ())
    if not names:
        return
    from ci_agent_eval.authoring.scenarios.load import load_scenarios  # noqa: PLC0415 - inert until used

    definition = metafunc.definition
    if ARGUMENT not in metafunc.fixturenames:
        raise _build_usage_error(definition, f"takes no argument `{ARGUMENT}`; give it one")
    repo = RepositoryPaths.find(metafunc.config.rootpath, os.environ)
    found: list[Scenario] = []
    for name in names:
        path = Path(os.path.normpath(definition.path.parent / name))
        try:
            found += load_scenarios(path, repo.relative(path) or name)
        except InputError as error:
            raise pytest.Collector.CollectError(str(error)) from None
    _refuse_same_ids(found)
    metafunc.parametrize(ARGUMENT, [_build_parameter(scenario) for scenario in found])


def check_scenario_ran(item: pytest.Item) -> None:
    """Fail a test that returned without running its scenario, as no check was made."""
    scenario = getattr(item, "callspec", None) and item.callspec.params.get(ARGUMENT)  # type: ignore[attr-defined]
    if scenario is None or not hasattr(getattr(item, "function", None), ATTRIBUTE):
        return
    recorder = item.stash[EPISODE].recorder
    if recorder is not None and not scenario.was_checked(recorder):
        recorder.check(
            "runs its scenario",
            passed=False,
            reason=f"the test never called `{ARGUMENT}.run(app)`, so nothing of it was checked",
        )


def _build_parameter(scenario: Scenario) -> Any:
    mark = getattr(pytest.mark, MARKER)(**scenario.marker)
    return pytest.param(scenario, id=scenario.id, marks=mark)


def _refuse_same_ids(found: Iterable[Scenario]) -> None:
    """Refuse two files of a test with the same scenario id."""
    places: dict[str, str] = {}
    for scenario in found:
        place = f"{scenario.file}:{scenario.line}"
        if first := places.get(scenario.id):
            raise pytest.Collector.CollectError(
                f"{place}: id {scenario.id!r} is that of {first} already; give it another one"
            )
        places[scenario.id] = place


def _build_usage_error(definition: pytest.Item, problem: str) -> pytest.Collector.CollectError:
    return pytest.Collector.CollectError(f"{definition.nodeid}: @scenarios: the test {problem}")
