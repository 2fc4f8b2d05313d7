"""What declares an episode: the marker `episode`, scenario files, and the names of scenarios."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.authoring.scenarios import ARGUMENT as SCENARIO
from ci_agent_eval.contract.affected import is_file_pattern
from ci_agent_eval.contract.base import describe_unknown_key
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.iteration_range import IterationRange, parse_iterations
from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.detection import EPISODE, NAME, owns_marker
from ci_agent_eval.pytest_plugin.collection.iterations import (
    ARGUMENT,
    PARAMETER,
    get_base_nodeid,
    get_iteration,
)
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.recording import build_initial_episode

if TYPE_CHECKING:
    from ci_agent_eval.authoring.scenarios.scenario import Scenario


ARGUMENTS = (
    "scenario_id",
    "budgets",
    "gate",
    "min_pass_rate",
    "min_passes",
    ARGUMENT,
    "allowed_stops",
    "faults",
    "agent",
    "model",
    "metadata",
    "was",
    "alone",
    "evidence",
    "depends_on",
)
_MERGED_ARGUMENTS = ("budgets", "metadata")

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


def build_episode_from_marker(
    item: pytest.Item | pytest.Collector, *, scenario_id: str, **identity: Any
) -> Episode:
    """Build the item's initial episode; `scenario_id` is the default if the marker has none.

    Raises InputError with a message that names the test and the key.
    """
    try:
        arguments = read_marker_arguments(item)
        gate = {"gate": "advisory"} if is_advisory(arguments, identity.get("mode")) else {}
        needs = {"evidence": "required"} if identity.get("mode") == "strict" else {}
        values = {"scenario_id": scenario_id, **gate, **needs, **arguments}
        limits = _parse_iterations(values.pop(ARGUMENT, 1))
        _check_alone(values.pop("alone", None))
        parse_declared_files(values.pop("depends_on", ()))
        _check_reach(item, arguments, limits)
        if isinstance(values.get("was"), str):
            values["was"] = (values["was"],)
        return build_initial_episode(**{**values, **identity})
    except InputError as error:
        raise InputError(f"{get_base_nodeid(item)}: @pytest.mark.episode: {error}") from None


def is_advisory(arguments: Mapping[str, Any], mode: str | None) -> bool:
    """Return whether an episode is advisory: an evaluation whose marker sets no requirement."""
    required = ("gate", "min_pass_rate", "min_passes")
    return mode == "evaluation" and not any(key in arguments for key in required)


def _parse_iterations(given: object) -> IterationRange:
    try:
        return parse_iterations(given)
    except ValueError as error:
        raise InputError(f"{ARGUMENT}: {error}") from None


def _check_alone(given: object) -> None:
    if given is not None and not isinstance(given, bool):
        raise InputError(f"alone: must be True or False (got {given!r})")


def parse_declared_files(given: object) -> tuple[str, ...]:
    """Return the declared patterns. Raises InputError."""
    patterns = (given,) if isinstance(given, str) else given
    if not isinstance(patterns, Sequence) or not all(map(is_file_pattern, patterns)):
        raise InputError(
            "depends_on: must be a list of files or patterns below the repository's root, such as "
            f"['prompts/refund.md', 'src/agents/*'] (got {given!r})"
        )
    return tuple(patterns)


def _check_reach(
    item: pytest.Item | pytest.Collector, given: Mapping[str, Any], limits: IterationRange
) -> None:
    """Refuse more passes than iterations, if no other test adds iterations."""
    passes: Any = given.get("min_passes")
    if passes is not None and (limits.minimum or get_iteration(item).limits.minimum):
        raise InputError("min_passes needs a fixed number of iterations; give min_pass_rate")
    if not isinstance(passes, int) or ARGUMENT not in given or passes <= limits.total:
        return
    if "scenario_id" not in given or _names_own_scenario(item):
        raise InputError(f"min_passes {passes} of {limits.total} iterations can never be reached")


def _names_own_scenario(item: pytest.Item | pytest.Collector) -> bool:
    """Return whether the marker names a scenario of one test, not of a class or several cases."""
    if set(getattr(getattr(item, "callspec", None), "params", {})) - {PARAMETER}:
        return False
    own = [mark for mark in item.own_markers if mark.name == NAME]
    named = any(mark.args or "scenario_id" in mark.kwargs for mark in own)
    return named and isinstance(item, pytest.Item)


def read_marker_arguments(item: pytest.Item | pytest.Collector) -> dict[str, Any]:
    """Return the arguments of the item's markers; the closest marker to the test wins.

    Budgets and metadata of a class or module are merged with those of the test. Empty if a project
    has its own marker of this name.
    """
    if not owns_marker(item):
        return {}
    arguments: dict[str, Any] = {}
    for mark in reversed(list(item.iter_markers(NAME))):
        for key, value in _name_arguments(mark).items():
            if key in _MERGED_ARGUMENTS and isinstance(value, Mapping):
                arguments[key] = {**arguments.get(key, {}), **value}
            elif value is not None:
                arguments[key] = value
    return arguments


def _name_arguments(mark: pytest.Mark) -> Mapping[str, Any]:
    """Return a marker's arguments by name; the only positional one is `scenario_id`."""
    if len(mark.args) > 1:
        raise InputError("give everything after `scenario_id` by name")
    for key in mark.kwargs:
        if key not in ARGUMENTS:
            raise InputError(describe_unknown_key(key, ARGUMENTS))
    if not mark.args:
        return mark.kwargs
    if "scenario_id" in mark.kwargs:
        raise InputError("`scenario_id` is given twice: without a name, and by it; leave one out")
    (given,) = mark.args
    if not isinstance(given, str) or not given.strip():
        raise InputError(f"scenario_id: the argument without a name must be a text (got {given!r})")
    return {"scenario_id": given, **mark.kwargs}


def refuse_unreadable_markers(
    report: pytest.CollectReport, items: Sequence[pytest.Item | pytest.Collector]
) -> pytest.CollectReport:
    """Return the report, or a failed one that lists every invalid marker."""
    problems = [problem for item in items if (problem := find_marker_problem(item)) is not None]
    if not problems:
        return report
    # All iterations of a test have the same problem.
    return pytest.CollectReport(report.nodeid, "failed", "\n".join(dict.fromkeys(problems)), [])


def find_marker_problem(item: pytest.Item | pytest.Collector) -> str | None:
    """Return the problem with the item's markers, or None."""
    try:
        build_episode_from_marker(item, scenario_id=item.nodeid, nodeid=item.nodeid)
    except InputError as error:
        return str(error)
    return None


def parametrize_scenarios(metafunc: pytest.Metafunc) -> None:
    """Create an episode for each scenario of a test that `@scenarios` decorates."""
    names: tuple[str, ...] = getattr(metafunc.function, detection.SCENARIOS, ())
    if not names:
        return
    from ci_agent_eval.authoring.scenarios.load import load_scenarios  # noqa: PLC0415 - inert until used

    definition = metafunc.definition
    if SCENARIO not in metafunc.fixturenames:
        raise _build_usage_error(definition, f"takes no argument `{SCENARIO}`; give it one")
    repo = RepositoryPaths.find(metafunc.config.rootpath, os.environ)
    found: list[Scenario] = []
    for name in names:
        path = Path(os.path.normpath(definition.path.parent / name))
        try:
            found += load_scenarios(path, repo.relative(path) or name)
        except InputError as error:
            raise pytest.Collector.CollectError(str(error)) from None
    _refuse_same_ids(found)
    metafunc.parametrize(SCENARIO, [_build_parameter(scenario) for scenario in found])


def check_scenario_ran(item: pytest.Item) -> None:
    """Fail a test that returned without running its scenario, as no check was made."""
    scenario = getattr(item, "callspec", None) and item.callspec.params.get(SCENARIO)  # type: ignore[attr-defined]
    if scenario is None or not hasattr(getattr(item, "function", None), detection.SCENARIOS):
        return
    recorder = item.stash[EPISODE].recorder
    if recorder is not None and not scenario.was_checked(recorder):
        recorder.check(
            "runs its scenario",
            passed=False,
            reason=f"the test never called `{SCENARIO}.run(app)`, so nothing of it was checked",
        )


def _build_parameter(scenario: Scenario) -> Any:
    mark = getattr(pytest.mark, NAME)(**scenario.marker)
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
    return item.stash[EPISODE].final_episode is None


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
