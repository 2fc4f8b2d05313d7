"""Conditions of iterations (model, tools, …), which decide whether two runs are comparable.

An iteration is compared if the other side has iterations under the same conditions. An unknown
condition matches any value. Episodes that ended in an error do not count: they may have ended
before a model or tool was known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from functools import lru_cache

from ci_agent_eval.analysis.comparison.model import (
    ChangedCondition,
    ConditionDifference,
    ScenarioComparison,
)
from ci_agent_eval.analysis.loaded_results import EpisodeRecord

CONDITIONS = ("model", "tools", "prices", "judge")

ConditionValues = tuple[str | None, ...]
"""The value of each of `CONDITIONS`; None: unknown."""

ConditionSets = frozenset[ConditionValues]
"""The distinct conditions of several iterations."""

_UNKNOWN: ConditionValues = (None,) * len(CONDITIONS)
_JUDGED = frozenset({"passed", "failed"})


def collect_conditions(episodes: Iterable[EpisodeRecord]) -> ConditionSets:
    """Return the distinct conditions of judged episodes."""
    return frozenset(read_conditions(record) for record in episodes if record.outcome in _JUDGED)


def read_conditions(record: EpisodeRecord) -> ConditionValues:
    """Return the conditions of an episode."""
    conditions = record.conditions
    tools = None if conditions.tools is None else _join_tools(conditions.tools)
    return record.model, tools, conditions.prices, conditions.judge


@lru_cache(1024)
def _join_tools(tools: tuple[str, ...]) -> str:
    return ", ".join(sorted(set(tools))) or "none"


def find_common_conditions(
    before: ConditionSets, after: ConditionSets, across: Collection[str]
) -> tuple[ConditionSets, ConditionSets]:
    """Return the conditions of each side that match the other; both are empty if none match.

    `across` are the conditions that may differ.
    """
    old, new = _keep_most_specific(before, across), _keep_most_specific(after, across)
    return (
        frozenset(one for one in old if matches_any(one, new, across)),
        frozenset(one for one in new if matches_any(one, old, across)),
    )


def matches_any(
    one: ConditionValues, others: Iterable[ConditionValues], across: Collection[str]
) -> bool:
    """Return whether the conditions equal any of the others in all values known to both."""
    one = _drop_ignored(one, across)
    return any(
        all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))
        for other in others
    )


def _drop_ignored(known: ConditionValues, across: Collection[str]) -> ConditionValues:
    """Return the conditions, with the names in `across` set to unknown."""
    if not across:
        return known
    named = zip(CONDITIONS, known, strict=True)
    return tuple(None if name in across else value for name, value in named)


def _keep_most_specific(condition_sets: ConditionSets, across: Collection[str]) -> ConditionSets:
    """Drop conditions that equal others with more known values.

    Else an iteration that ended before its model was known would match everything.
    """
    kinds = frozenset(_drop_ignored(kind, across) for kind in condition_sets or {_UNKNOWN})
    return frozenset(
        kind for kind in kinds if not any(_is_less_specific(kind, other) for other in kinds)
    )


def _is_less_specific(kind: ConditionValues, other: ConditionValues) -> bool:
    pairs = zip(kind, other, strict=True)
    return kind != other and all(value is None or value == more for value, more in pairs)


def compare_conditions(
    before: Iterable[ConditionValues], after: Iterable[ConditionValues], across: Collection[str]
) -> tuple[ConditionDifference, ...]:
    """Return the conditions that are known on both sides and differ, without `across`."""
    old, new = _collect_values(before), _collect_values(after)
    both = [n for n in CONDITIONS if n not in across and old[n] and new[n]]
    # If each condition is the same on both sides, their combinations differ.
    differing = [n for n in both if old[n] != new[n]] or both
    return tuple(ConditionDifference(n, "; ".join(old[n]), "; ".join(new[n])) for n in differing)


def list_changed_conditions(
    before: Iterable[ConditionValues], after: Iterable[ConditionValues]
) -> tuple[ConditionDifference, ...]:
    """Return the conditions that are known on both sides and whose values differ."""
    old, new = _collect_values(before), _collect_values(after)
    return tuple(
        ConditionDifference(name, "; ".join(old[name]), "; ".join(new[name]))
        for name in CONDITIONS
        if old[name] and new[name] and old[name] != new[name]
    )


def count_changed_conditions(
    scenarios: Iterable[ScenarioComparison],
) -> tuple[ChangedCondition, ...]:
    """Count the compared scenarios with each difference, the most frequent first."""
    counts = Counter(difference for s in scenarios for difference in s.changed_conditions)
    found = (ChangedCondition(difference, count) for difference, count in counts.items())
    return tuple(
        sorted(found, key=lambda c: (-c.scenarios, c.difference.condition, c.difference.after))
    )


def _collect_values(condition_sets: Iterable[ConditionValues]) -> dict[str, list[str]]:
    """Return the sorted values of each condition."""
    listed = list(condition_sets)
    return {
        name: sorted({value for kind in listed if (value := kind[place]) is not None})
        for place, name in enumerate(CONDITIONS)
    }
