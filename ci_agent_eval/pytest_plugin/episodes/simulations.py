"""Scenario files as parametrized episodes, and the end of conversations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.authoring.scenarios import ARGUMENT, ATTRIBUTE
from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE
from ci_agent_eval.pytest_plugin.collection.detection import NAME as MARKER
from ci_agent_eval.pytest_plugin.collection.iterations import get_base_nodeid
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths

if TYPE_CHECKING:
    from ci_agent_eval.authoring.scenarios.scenario import Scenario


__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


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
                f"{place}: id {scenario.id!r} is already used in {first}; give it another one"
            )
        places[scenario.id] = place


def _build_usage_error(definition: pytest.Item, problem: str) -> pytest.Collector.CollectError:
    return pytest.Collector.CollectError(f"{definition.nodeid}: @scenarios: the test {problem}")


def end_conversation(item: pytest.Item, errors: Sequence[Exception]) -> None:
    """Raise the errors that cleaning up the agents of a test raised."""
    if errors and _was_interrupted(item):
        # After Ctrl-C an exception in a teardown would end pytest itself.
        shown = "; ".join(f"{type(error).__name__}: {error}" for error in errors)
        if item.config.pluginmanager.hasplugin("terminalreporter"):
            item.config.get_terminal_writer().line(
                make_printable(f"{item.nodeid}: cleaning up the agent failed: {shown}")
            )
    elif len(errors) > 1:
        raise ExceptionGroup("cleaning up the agents failed", errors)
    elif errors:
        raise errors[0]


def _was_interrupted(item: pytest.Item) -> bool:
    """Return whether the test has no ending, not even a failed one."""
    return item.stash[detection.EPISODE].final_episode is None


def get_default_scenario(item: pytest.Item) -> str:
    """Return the scenario of an item whose marker names none: its conversation or node id."""
    nodeid = get_base_nodeid(item)
    if not detection.is_conversation(item):
        return nodeid
    _, found, parameters = nodeid.partition(f"::{getattr(item, 'originalname', item.name)}[")
    return (
        f"{_get_declaration(item).name}[{parameters}" if found else str(_get_declaration(item).name)
    )


def _get_declaration(item: pytest.Item) -> Any:
    return getattr(item.obj, detection.CONVERSATION)  # type: ignore[attr-defined]  # see is_conversation
