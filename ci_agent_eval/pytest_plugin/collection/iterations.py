"""Iterations: an episode's test is collected N times, each an ordinary item of its own.

Asked of every test function of every project, so it stays cheap and imports no contract.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from ci_agent_eval.pytest_plugin.collection import detection

PARAMETER = "_agent_eval_iteration"
"""Name of the parameter that an iteration bears; nobody's test asks for it."""

ARGUMENT = "iterations"
"""Name of the marker's argument."""


class Iteration(NamedTuple):
    """One of the iterations of a test; both 1-based."""

    number: int
    of: int

    @property
    def label(self) -> str:
        """How the node id calls it."""
        return f"{self.number}-of-{self.of}"


def repeat_episodes(metafunc: pytest.Metafunc, default: int) -> None:
    """Parametrize those calls of the function that are episodes, after all other parameters.

    `metafunc._calls` is what `parametrize` fills; each call may have a number of its own,
    which it has no argument for.
    """
    internals: Any = metafunc
    calls = list(internals._calls) or [None]  # noqa: SLF001 - see above
    times = [_count_iterations(metafunc, call, default) for call in calls]
    if max(times) == 1:
        return
    repeated: list[Any] = []
    for call, number in zip(calls, times, strict=True):
        internals._calls = [] if call is None else [call]  # noqa: SLF001 - see above
        if number > 1:
            _add_iteration_parameter(metafunc, number)
        repeated += internals._calls  # noqa: SLF001 - see above
    internals._calls = repeated  # noqa: SLF001 - see above


def _count_iterations(metafunc: pytest.Metafunc, call: Any, default: int) -> int:
    """Say how often a call runs: once, if it is no episode."""
    definition = metafunc.definition
    added = [mark for mark in getattr(call, "marks", ()) if mark.name == detection.NAME]
    if not detection.is_episode(definition) and not (added and detection.owns_marker(definition)):
        return 1
    parent = definition.parent
    outer = parent.iter_markers(detection.NAME) if parent is not None else ()
    # In the order in which the item will have them.
    own = [mark for mark in definition.own_markers if mark.name == detection.NAME]
    return _get_requested_count([*own, *added, *outer], default)


def _get_requested_count(marks: Iterable[pytest.Mark], default: int) -> int:
    asked = next((m.kwargs[ARGUMENT] for m in marks if m.kwargs.get(ARGUMENT) is not None), default)
    # One that is no number is a collection error, which comes of the marker as a whole.
    return asked if is_iteration_count(asked) else 1


def _add_iteration_parameter(metafunc: pytest.Metafunc, times: int) -> None:
    iterations = [Iteration(number, times) for number in range(1, times + 1)]
    # pytest refuses names that the function does not ask for, and forgets this one afterwards:
    # the fixtures of an item are those that its function leads to.
    names: list[str] = metafunc.fixturenames
    if PARAMETER not in names:
        names.append(PARAMETER)
    labels = [iteration.label for iteration in iterations]
    metafunc.parametrize(PARAMETER, iterations, ids=labels, scope="function")


def is_iteration_count(value: object) -> bool:
    """Say whether a value is a number of iterations: a whole one, 1 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def get_iteration(item: pytest.Item | pytest.Collector) -> Iteration:
    """Return which of its iterations an item is; the only one, if it is not repeated."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    found: Iteration = parameters.get(PARAMETER) or Iteration(1, 1)
    return found


def get_base_nodeid(item: pytest.Item | pytest.Collector) -> str:
    """Return the node id that the item's iterations have in common; it keeps the user's own id."""
    iteration = get_iteration(item)
    nodeid = item.nodeid
    if iteration.of > 1:
        nodeid = nodeid.removesuffix(f"[{iteration.label}]")
        own = nodeid.removesuffix(f"-{iteration.label}]")
        nodeid = nodeid if own == nodeid else f"{own}]"
    return nodeid


def find_unrepeated_episodes(items: Iterable[pytest.Item], default: int) -> Iterator[pytest.Item]:
    """Yield the episodes that were to be repeated and could not be."""
    for item in items:
        if (
            get_iteration(item).of == 1
            and _get_requested_count(item.iter_markers(detection.NAME), default) > 1
        ):
            yield item
