"""Whether two runs of a scenario may be compared: what each of their iterations ran under.

Like is compared with like: an iteration counts if the other side has iterations under the same
conditions. What an episode does not say keeps nothing apart, and one that ended in an error
says nothing, for it may have ended before there was a model or a tool.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from ci_agent_eval.analysis.comparison.model import Difference
from ci_agent_eval.analysis.loaded_results import EpisodeFacts

CONDITIONS = ("model", "tools", "prices", "judge")

Known = tuple[str | None, ...]
"""What is known of each of `CONDITIONS`; None: nothing."""

Kinds = frozenset[Known]
"""The different conditions that iterations ran under."""

_NOTHING: Known = (None,) * len(CONDITIONS)
_JUDGED = frozenset({"passed", "failed"})


def conditions_of(episodes: Iterable[EpisodeFacts]) -> Kinds:
    """Return the conditions under which episodes were judged."""
    return frozenset(said(facts) for facts in episodes if facts.outcome in _JUDGED)


def said(facts: EpisodeFacts) -> Known:
    """Return what an episode says of its conditions."""
    conditions = facts.conditions
    tools = None if conditions.tools is None else _joined(conditions.tools)
    return facts.model, tools, conditions.prices, conditions.judge


@lru_cache(1024)
def _joined(tools: tuple[str, ...]) -> str:
    return ", ".join(sorted(set(tools))) or "none"


def common(before: Kinds, after: Kinds, across: Collection[str]) -> tuple[Kinds, Kinds]:
    """Return what of each side the other has, too; both are empty where there is nothing.

    `across` are the conditions that may differ.
    """
    old, new = _whole(before, across), _whole(after, across)
    return (
        frozenset(one for one in old if matches(one, new, across)),
        frozenset(one for one in new if matches(one, old, across)),
    )


def matches(one: Known, others: Iterable[Known], across: Collection[str]) -> bool:
    """Say whether some of the others differ in nothing that is known of both."""
    one = _kept(one, across)
    return any(
        all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))
        for other in others
    )


def _kept(known: Known, across: Collection[str]) -> Known:
    """Return conditions without those that may differ."""
    if not across:
        return known
    named = zip(CONDITIONS, known, strict=True)
    return tuple(None if name in across else value for name, value in named)


def _whole(kinds: Kinds, across: Collection[str]) -> Kinds:
    """Return kinds without those that say the same as another and less of it.

    Else an iteration that never came to its model would be like any other side's.
    """
    masks: dict[tuple[bool, ...], set[Known]] = {}
    for kind in (_kept(kind, across) for kind in kinds or {_NOTHING}):
        masks.setdefault(tuple(value is not None for value in kind), set()).add(kind)
    return frozenset(
        kind
        for mask, group in masks.items()
        for kind in group - {_masked(more, mask) for more in _richer(mask, masks)}
    )


def _richer(mask: tuple[bool, ...], masks: dict[tuple[bool, ...], set[Known]]) -> Iterator[Known]:
    for other, group in masks.items():
        if other != mask and all(a >= b for a, b in zip(other, mask, strict=True)):
            yield from group


def _masked(known: Known, mask: tuple[bool, ...]) -> Known:
    return tuple(value if shown else None for value, shown in zip(known, mask, strict=True))


def differences(
    before: Iterable[Known], after: Iterable[Known], across: Collection[str]
) -> tuple[Difference, ...]:
    """Return the conditions that are known on both sides, differ, and may not."""
    old, new = _values(before), _values(after)
    both = [n for n in CONDITIONS if n not in across and old[n] and new[n]]
    # Where each alone is the same on both sides, it is how they come together that differs.
    differing = [n for n in both if old[n] != new[n]] or both
    return tuple(Difference(n, "; ".join(old[n]), "; ".join(new[n])) for n in differing)


def _values(kinds: Iterable[Known]) -> dict[str, list[str]]:
    """Return the values of each condition, sorted."""
    listed = list(kinds)
    return {
        name: sorted({value for kind in listed if (value := kind[place]) is not None})
        for place, name in enumerate(CONDITIONS)
    }
