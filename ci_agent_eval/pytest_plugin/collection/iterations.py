"""Iterations: an episode's test is collected N times, each time as an ordinary item.

Called for every test function of every project, so it is fast and does not import the contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from ci_agent_eval.pytest_plugin.collection import detection

PARAMETER = "_agent_eval_iteration"
"""Name of the parameter that holds an iteration; no test requests it."""

ARGUMENT = "iterations"
"""Name of the marker's argument."""


class Iteration(NamedTuple):
    """One iteration of a test; both numbers start at 1."""

    number: int
    total: int

    @property
    def label(self) -> str:
        """The iteration's part of the node id."""
        return f"{self.number}-of-{self.total}"


def repeat_episodes(metafunc: pytest.Metafunc, default: int) -> None:
    """Parametrize the function's episodes with iterations, after all other parameters.

    `parametrize` fills `metafunc._calls`; each call may need its own number of iterations, which
    has no public argument.
    """
    internals: Any = metafunc
    calls = list(internals._calls) or [None]  # noqa: SLF001 - see above
    counts = [_count_iterations(metafunc, call, default) for call in calls]
    if max(counts) == 1:
        return
    repeated: list[Any] = []
    for call, number in zip(calls, counts, strict=True):
        internals._calls = [] if call is None else [call]  # noqa: SLF001 - see above
        if number > 1:
            _add_iteration_parameter(metafunc, number)
        repeated += internals._calls  # noqa: SLF001 - see above
    internals._calls = repeated  # noqa: SLF001 - see above


def _count_iterations(metafunc: pytest.Metafunc, call: Any, default: int) -> int:
    """Return how many times a call runs: once if it is not an episode."""
    definition = metafunc.definition
    added = [mark for mark in getattr(call, "marks", ()) if mark.name == detection.NAME]
    if not detection.is_episode(definition) and not (added and detection.owns_marker(definition)):
        return 1
    parent = definition.parent
    outer = parent.iter_markers(detection.NAME) if parent is not None else ()
    # In the order of the item's own markers.
    own = [mark for mark in definition.own_markers if mark.name == detection.NAME]
    return _get_requested_count([*own, *added, *outer], default)


def _get_requested_count(marks: Iterable[pytest.Mark], default: int) -> int:
    count = next((m.kwargs[ARGUMENT] for m in marks if m.kwargs.get(ARGUMENT) is not None), default)
    # An invalid number is a collection error, raised when the whole marker is read.
    return count if is_iteration_count(count) else 1


def _add_iteration_parameter(metafunc: pytest.Metafunc, count: int) -> None:
    iterations = [Iteration(number, count) for number in range(1, count + 1)]
    # pytest refuses names that the function does not request, and drops this one afterwards:
    # an item has only the fixtures that its function needs.
    names: list[str] = metafunc.fixturenames
    if PARAMETER not in names:
        names.append(PARAMETER)
    labels = [iteration.label for iteration in iterations]
    metafunc.parametrize(PARAMETER, iterations, ids=labels, scope="function")


def is_iteration_count(value: object) -> bool:
    """Return whether a value is a valid number of iterations: an integer of at least 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def get_iteration(item: pytest.Item | pytest.Collector) -> Iteration:
    """Return the item's iteration; 1 of 1 if its test is not repeated."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    found: Iteration = parameters.get(PARAMETER) or Iteration(1, 1)
    return found


def get_base_nodeid(item: pytest.Item | pytest.Collector) -> str:
    """Return the node id that all iterations of a test share, with the user's own parameter ids."""
    iteration = get_iteration(item)
    nodeid = item.nodeid
    if iteration.total > 1:
        nodeid = nodeid.removesuffix(f"[{iteration.label}]")
        shortened = nodeid.removesuffix(f"-{iteration.label}]")
        nodeid = nodeid if shortened == nodeid else f"{shortened}]"
    return nodeid


def find_unrepeated_episodes(items: Iterable[pytest.Item], default: int) -> Iterator[pytest.Item]:
    """Yield the episodes that should have been repeated and could not be."""
    for item in items:
        if (
            get_iteration(item).total == 1
            and _get_requested_count(item.iter_markers(detection.NAME), default) > 1
        ):
            yield item
