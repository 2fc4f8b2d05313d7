"""Iterations and variants: an episode's test is collected N times, each time as an ordinary item.

Adaptive iterations are collected up to their maximum; those that turn out not to be needed are
passed over when their turn comes. Called for every test function of every project, so it is fast
and does not import pydantic.
"""

from __future__ import annotations

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
from ci_agent_eval.pytest_plugin.collection import detection

PARAMETER = "_agent_eval_iteration"
"""Name of the parameter that holds an iteration; no test requests it."""

ARGUMENT = "iterations"
"""Name of the marker's argument."""

VARIANTS = "variants"
"""Name of the marker whose values a test runs with, one after the other."""

VARIANT = "variant"
"""Name of the test's argument that gets a variant's value."""

VARIANTS_HELP = (
    "variants(name=value, ...): run the test once with each value as its argument `variant`, and "
    "compare the results; a name is the agent of its episodes (ci-agent-eval)"
)

_ONCE = IterationRange(1)

_ParameterSet: Any = type(pytest.param(None))


class Iteration(NamedTuple):
    """One iteration of a test; both numbers start at 1."""

    number: int
    limits: IterationRange

    @property
    def label(self) -> str:
        """The iteration's part of the node id."""
        return format_iteration(self.number, self.limits)


def parametrize_variants(metafunc: pytest.Metafunc) -> None:
    """Parametrize a test with the variants of its marker, after all parameters but iterations.

    So the variants of a case run one after the other: all iterations of the first, then the next.
    Raises CollectError for a marker that cannot be used.
    """
    definition = metafunc.definition
    marker = definition.get_closest_marker(VARIANTS)
    if marker is None or not detection.owns_marker(definition, VARIANTS, VARIANTS_HELP):
        return
    if VARIANT not in metafunc.fixturenames and not detection.is_episode(definition):
        return  # a marker of the project's own that it did not register
    if problem := next(_find_variants_problems(metafunc, marker), None):
        raise pytest.Collector.CollectError(
            f"{definition.nodeid}: @pytest.mark.{VARIANTS}: {problem}"
        )
    metafunc.parametrize(VARIANT, [_build_parameter(*given) for given in marker.kwargs.items()])


def _build_parameter(name: str, value: Any) -> Any:
    """Return a variant's parameter; a value from `pytest.param` keeps its marks."""
    values, marks = value[:2] if isinstance(value, _ParameterSet) else ((value,), ())
    mark = getattr(pytest.mark, detection.NAME)(agent=name)
    return pytest.param(*values, id=name, marks=[*marks, mark])


def _find_variants_problems(metafunc: pytest.Metafunc, marker: pytest.Mark) -> Iterator[str]:
    if sum(mark.name == VARIANTS for mark in metafunc.definition.own_markers) > 1:
        yield "give all variants in one marker"
    if marker.args or len(marker.kwargs) < 2:
        yield "give two values or more by name, such as concise=AGENT, detailed=OTHER_AGENT"
    if VARIANT not in metafunc.fixturenames:
        yield f"the test takes no argument `{VARIANT}`; give it one"
    for name in marker.kwargs:
        if not (name.strip() and name.isascii() and name.isprintable() and "\\" not in name):
            yield f"a name must be printable ASCII text without a backslash (got {name!r})"
    if not detection.owns_marker(metafunc.definition):
        yield (
            f"it names the agent by our marker `{detection.NAME}`, and pytest's setting `markers` "
            "names one as the project's own; take it out of there"
        )
    calls: Any = metafunc._calls  # noqa: SLF001 - see `repeat_episodes`
    if any(VARIANT in call.params for call in calls):
        yield f"`{VARIANT}` has a parameter already; give its values in one of the two"
    given = [value for value in marker.kwargs.values() if isinstance(value, _ParameterSet)]
    added = (mark for one in (*calls, *given) for mark in one.marks)
    marks = [*metafunc.definition.own_markers, *added]
    if any(mark.name == detection.NAME and "agent" in mark.kwargs for mark in marks):
        yield "leave `agent` out of @pytest.mark.episode: the variant's name is the agent"


def repeat_episodes(
    metafunc: pytest.Metafunc, default: IterationRange, forced: IterationRange | None = None
) -> None:
    """Parametrize the function's episodes with iterations, after all other parameters.

    `forced` is a number that replaces what markers ask for.

    `parametrize` fills `metafunc._calls`; each call may need its own number of iterations, which
    has no public argument.
    """
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


def get_variant(item: pytest.Item) -> str | None:
    """Return the name of the item's variant; None: its test has none."""
    parameters = getattr(item, "callspec", None)
    if VARIANT not in getattr(parameters, "params", {}) or not item.get_closest_marker(VARIANTS):
        return None
    if not detection.owns_marker(item, VARIANTS, VARIANTS_HELP):
        return None
    marks = reversed(getattr(parameters, "marks", ()))
    return next((mark.kwargs["agent"] for mark in marks if "agent" in mark.kwargs), None)


def lacks_variant(item: pytest.Item | pytest.Collector) -> bool:
    """Return whether the item has our marker of variants, and pytest gave it no variant."""
    marked = isinstance(item, pytest.Item) and item.get_closest_marker(VARIANTS) is not None
    return (
        marked
        and detection.owns_marker(item, VARIANTS, VARIANTS_HELP)
        and VARIANT not in getattr(getattr(item, "callspec", None), "params", {})
    )


def get_case_nodeid(item: pytest.Item) -> str:
    """Return the node id that all iterations and variants of a test share."""
    base, variant = get_base_nodeid(item), get_variant(item)
    if variant is None:
        return base
    others = base.removesuffix(f"{variant}]")  # the last parameter
    if others == base:
        return base
    return others.removesuffix("[") if others.endswith("[") else f"{others.removesuffix('-')}]"


def get_scenario_unit(item: pytest.Item) -> str:
    """Return the unit of items that stay together: the scenario, or else the test itself."""
    named = _get_named_scenario(item.iter_markers(detection.NAME))
    return named if named is not None and detection.is_marked(item) else get_case_nodeid(item)


def get_shared_case(item: pytest.Item) -> str:
    """Return the parameters' ids in brackets, if the cases of a test are one scenario; else ""."""
    base, parameters = get_base_nodeid(item), getattr(item, "callspec", None)
    marks = (mark for mark in getattr(parameters, "marks", ()) if mark.name == detection.NAME)
    is_own = get_scenario_unit(item) == base or _get_named_scenario(marks) is not None
    if is_own and get_variant(item) is None:
        return ""
    function = getattr(item, "originalname", item.name)
    return base.removeprefix(item.nodeid.removesuffix(item.name) + function)


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
