"""Iterations: an episode's test is collected N times, each time as an ordinary item.

Adaptive iterations are collected up to their maximum; those that turn out not to be needed are
passed over when their turn comes. Called for every test function of every project, so it is fast
and does not import pydantic.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ci_agent_eval.contract.iteration_range import (
    IterationRange,
    format_iteration,
    parse_iterations,
    remove_iteration,
)
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.parts import get_parts

PARAMETER = "_agent_eval_iteration"
"""Name of the parameter that holds an iteration; no test requests it."""

ARGUMENT = "iterations"
"""Name of the marker's argument."""

_ONCE = IterationRange(1)


class Iteration(NamedTuple):
    """One iteration of a test; both numbers start at 1."""

    number: int
    limits: IterationRange

    @property
    def label(self) -> str:
        """The iteration's part of the node id."""
        return format_iteration(self.number, self.limits)


def repeat_episodes(metafunc: pytest.Metafunc) -> None:
    """Parametrize the function's episodes with iterations, after all other parameters.

    `parametrize` fills `metafunc._calls`; each call may need its own number of iterations, which
    has no public argument.
    """
    default = options.get_iterations(metafunc.config)
    forced = get_parts(metafunc.config).forced_iterations
    internals: Any = metafunc
    calls = list(internals._calls) or [None]  # noqa: SLF001 - see above
    ranges = [_find_iterations(metafunc, call, default, forced) for call in calls]
    if all(limits.total == 1 for limits in ranges):
        return
    repeated: list[Any] = []
    for call, limits in zip(calls, ranges, strict=True):
        internals._calls = [] if call is None else [call]  # noqa: SLF001 - see above
        if limits.total > 1:
            _add_iteration_parameter(metafunc, limits)
        repeated += internals._calls  # noqa: SLF001 - see above
    internals._calls = repeated  # noqa: SLF001 - see above


def _find_iterations(
    metafunc: pytest.Metafunc, call: Any, default: IterationRange, forced: IterationRange | None
) -> IterationRange:
    """Return how often a call runs: once if it is not an episode."""
    definition = metafunc.definition
    added = [mark for mark in getattr(call, "marks", ()) if mark.name == detection.NAME]
    if not detection.is_episode(definition) and not (added and detection.owns_marker(definition)):
        return _ONCE
    if forced is not None:
        return forced
    parent = definition.parent
    outer = parent.iter_markers(detection.NAME) if parent is not None else ()
    # In the order of the item's own markers.
    own = [mark for mark in definition.own_markers if mark.name == detection.NAME]
    return _get_requested_iterations([*own, *added, *outer], default)


def _get_requested_iterations(
    marks: Iterable[pytest.Mark], default: IterationRange
) -> IterationRange:
    given = next((m.kwargs[ARGUMENT] for m in marks if m.kwargs.get(ARGUMENT) is not None), None)
    if given is None:
        return default
    try:
        return parse_iterations(given)
    except ValueError:
        return _ONCE  # a collection error, raised when the whole marker is read


def _add_iteration_parameter(metafunc: pytest.Metafunc, limits: IterationRange) -> None:
    iterations = [Iteration(number, limits) for number in range(1, limits.total + 1)]
    # pytest refuses names that the function does not request, and drops this one afterwards:
    # an item has only the fixtures that its function needs.
    names: list[str] = metafunc.fixturenames
    if PARAMETER not in names:
        names.append(PARAMETER)
    labels = [iteration.label for iteration in iterations]
    metafunc.parametrize(PARAMETER, iterations, ids=labels, scope="function")


def get_iteration(item: pytest.Item | pytest.Collector) -> Iteration:
    """Return the item's iteration; 1 of 1 if its test is not repeated."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    found: Iteration = parameters.get(PARAMETER) or Iteration(1, _ONCE)
    return found


def get_base_nodeid(item: pytest.Item | pytest.Collector) -> str:
    """Return the node id that all iterations of a test share, with the user's own parameter ids."""
    return remove_iteration(item.nodeid, *get_iteration(item))


def get_scenario_unit(item: pytest.Item) -> str:
    """Return the unit of items that stay together: the scenario, or else the test itself."""
    named = _get_named_scenario(item.iter_markers(detection.NAME))
    return named if named is not None and detection.is_marked(item) else get_base_nodeid(item)


def get_shared_case(item: pytest.Item) -> str:
    """Return the parameters' ids in brackets, if the cases of a test are one scenario; else ""."""
    base, parameters = get_base_nodeid(item), getattr(item, "callspec", None)
    marks = [mark for mark in getattr(parameters, "marks", ()) if mark.name == detection.NAME]
    has_agent = any("agent" in mark.kwargs for mark in marks)
    if get_scenario_unit(item) == base or (_get_named_scenario(marks) and not has_agent):
        return ""
    function = getattr(item, "originalname", item.name)
    return base.removeprefix(item.nodeid.removesuffix(item.name) + function)


def describe_case(item: pytest.Item) -> str | None:
    """Return the parameters of a case that shares its scenario with others; None: there are none.

    A number that pytest gave to a value, as in `case0`, is replaced by the value: another value
    under the same number is another case. Paths are relative to pytest's root folder, so that a
    case is the same on every machine.
    """
    case, root = get_shared_case(item), f"{item.config.rootpath.as_posix()}/"
    for name, value in getattr(getattr(item, "callspec", None), "params", {}).items():
        numbered = re.compile(rf"(?<![^\[-]){re.escape(name)}\d+(?=[-\]])")
        if numbered.search(case) and (shown := _show_data(value, root)) is not None:
            before, after = numbered.split(case, maxsplit=1)
            case = f"{before}{name}={shown}{after}"
    return case.replace(root, "") or None


def _show_data(value: object, root: str) -> str | None:
    """Return a value as text; None for an object that is known by its address, or an agent."""
    if type(value).__module__.startswith("ci_agent_eval."):
        return None
    try:
        text = _sort_sets(repr(value)).replace(root, "")
    except Exception:  # noqa: BLE001 - a text of the user's class
        return None
    if " at 0x" in text:
        return None
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}… {digest[:8]}"


_SET = r"""'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|\{[^{}]{1,2000}\}"""
"""Matches a quoted text, which stays as it is, or the possible text of a set without inner sets."""

_MAY_WARN = r"\\|\d[A-Za-z]"
"""Matches a backslash, and a number before a letter, whose style Python may warn about."""


def _sort_sets(text: str) -> str:
    """Return the text of values with the items of each literal set sorted."""
    return re.sub(_SET, _sort_set, text)


def _sort_set(found: re.Match[str]) -> str:
    if "..." in found[0] or found[0][0] != "{":
        return found[0]  # truncated, or with an Ellipsis: not the original value
    try:
        value = _parse_set(found[0])
    except Exception:  # noqa: BLE001 - other text is left unchanged
        return found[0]
    return f"{{{', '.join(sorted(map(repr, value)))}}}" if isinstance(value, set) else found[0]


def _parse_set(text: str) -> object:
    """Return the value of a literal without Python's warnings about the style of foreign text.

    Warnings are caught only where one may come: that changes the state of the whole process, and
    other threads run episodes.
    """
    if not re.search(_MAY_WARN, text):
        return ast.literal_eval(text)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="<unknown>")
        return ast.literal_eval(text)


_MAX_VALUE = 80
"""Characters of a parameter's value that reports show."""


def _get_named_scenario(marks: Iterable[pytest.Mark]) -> str | None:
    given = (mark.kwargs.get("scenario_id") or next(iter(mark.args), None) for mark in marks)
    return next((name for name in given if isinstance(name, str)), None)


def is_optional(item: pytest.Item) -> bool:
    """Return whether earlier iterations may make this one unnecessary."""
    iteration = get_iteration(item)
    return iteration.number > iteration.limits.guaranteed


def order_iterations(items: list[pytest.Item]) -> None:
    """Move the optional iterations behind the last other item of their module, round by round.

    Each round then knows the outcomes of the rounds before it, and fixtures of the module are set
    up once. Without optional iterations nothing moves.
    """
    optional = {i for i, item in enumerate(items) if is_optional(item)}
    if not optional:
        return
    last: dict[Path, int] = {item.path: place for place, item in enumerate(items)}

    def find_turn(place: int) -> tuple[int, int, int]:
        if place not in optional:
            return place, 0, 0
        return last[items[place].path], get_iteration(items[place]).number, place

    items[:] = [items[place] for place in sorted(range(len(items)), key=find_turn)]


def find_unrepeated_episodes(
    items: Iterable[pytest.Item], default: IterationRange
) -> Iterator[pytest.Item]:
    """Yield the episodes that should have been repeated and could not be."""
    for item in items:
        if (
            get_iteration(item).limits.total == 1
            and _get_requested_iterations(item.iter_markers(detection.NAME), default).total > 1
        ):
            yield item
