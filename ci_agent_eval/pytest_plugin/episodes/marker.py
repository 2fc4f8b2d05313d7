"""The marker `episode`: reading and validating its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ci_agent_eval.contract.affected import is_file_pattern
from ci_agent_eval.contract.base import describe_unknown_key
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.iteration_range import IterationRange, parse_iterations
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection.detection import NAME, owns_marker
from ci_agent_eval.pytest_plugin.collection.iterations import (
    ARGUMENT,
    PARAMETER,
    get_base_nodeid,
    get_iteration,
)
from ci_agent_eval.recording import build_initial_episode

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
