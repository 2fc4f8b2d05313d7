"""Whether two runs of a scenario may be compared: what each of their iterations ran under.

Like is compared with like: an iteration counts if the other side has iterations under the same
conditions. What an episode does not say keeps nothing apart, and one that ended in an error
says nothing, for it may have ended before there was a model or a tool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from ci_agent_eval.analysis.comparison.model import ConditionDifference
from ci_agent_eval.analysis.loaded_results import EpisodeRecord

CONDITIONS = ("model", "tools", "prices", "judge")

ConditionValues = tuple[str | None, ...]
"""What is known of each of `CONDITIONS`; None: nothing."""

ConditionSets = frozenset[ConditionValues]
"""The different conditions that iterations ran under."""

_UNKNOWN: ConditionValues = (None,) * len(CONDITIONS)
_JUDGED = frozenset({"passed", "failed"})


def collect_conditions(episodes: Iterable[EpisodeRecord]) -> ConditionSets:
    """Return the conditions under which episodes were judged."""
    return frozenset(read_conditions(record) for record in episodes if record.outcome in _JUDGED)


def read_conditions(record: EpisodeRecord) -> ConditionValues:
    """Return what an episode says of its conditions."""
    conditions = record.conditions
    tools = None if conditions.tools is None else _join_tools(conditions.tools)
    return record.model, tools, conditions.prices, conditions.judge


@lru_cache(1024)
def _join_tools(tools: tuple[str, ...]) -> str:
    return ", ".join(sorted(set(tools))) or "none"


def find_common_conditions(
    before: ConditionSets, after: ConditionSets, across: Collection[str]
) -> tuple[ConditionSets, ConditionSets]:
    """Return what of each side the other has, too; both are empty where there is nothing.

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
    """Say whether some of the others differ in nothing that is known of both."""
    one = _drop_ignored(one, across)
    return any(
        all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))
        for other in others
    )


def _drop_ignored(known: ConditionValues, across: Collection[str]) -> ConditionValues:
    """Return conditions without those that may differ."""
    if not across:
        return known
    named = zip(CONDITIONS, known, strict=True)
    return tuple(None if name in across else value for name, value in named)


def _keep_most_specific(kinds: ConditionSets, across: Collection[str]) -> ConditionSets:
    """Return kinds without those that say the same as another and less of it.

    Else an iteration that never came to its model would be like any other side's.
    """
    masks: dict[tuple[bool, ...], set[ConditionValues]] = {}
    for kind in (_drop_ignored(kind, across) for kind in kinds or {_UNKNOWN}):
        masks.setdefault(tuple(value is not None for value in kind), set()).add(kind)
    return frozenset(
        kind
        for mask, group in masks.items()
        for kind in group
        - {_apply_mask(more, mask) for more in _iterate_more_specific(mask, masks)}
    )


def _iterate_more_specific(
    mask: tuple[bool, ...], masks: dict[tuple[bool, ...], set[ConditionValues]]
) -> Iterator[ConditionValues]:
    for other, group in masks.items():
        if other != mask and all(a >= b for a, b in zip(other, mask, strict=True)):
            yield from group


def _apply_mask(known: ConditionValues, mask: tuple[bool, ...]) -> ConditionValues:
    return tuple(value if shown else None for value, shown in zip(known, mask, strict=True))


def list_condition_differences(
    before: Iterable[ConditionValues], after: Iterable[ConditionValues], across: Collection[str]
) -> tuple[ConditionDifference, ...]:
    """Return the conditions that are known on both sides, differ, and may not."""
    old, new = _values_by_condition(before), _values_by_condition(after)
    both = [n for n in CONDITIONS if n not in across and old[n] and new[n]]
    # Where each alone is the same on both sides, it is how they come together that differs.
    differing = [n for n in both if old[n] != new[n]] or both
    return tuple(ConditionDifference(n, "; ".join(old[n]), "; ".join(new[n])) for n in differing)


def _values_by_condition(kinds: Iterable[ConditionValues]) -> dict[str, list[str]]:
    """Return the values of each condition, sorted."""
    listed = list(kinds)
    return {
        name: sorted({value for kind in listed if (value := kind[place]) is not None})
        for place, name in enumerate(CONDITIONS)
    }
