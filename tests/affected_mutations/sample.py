"""Samples of the mutations, such as CI's."""

from __future__ import annotations

from collections.abc import Sequence

from tests.affected_mutations.mutation import Mutation

OFFSETS = 3
"""Samples that together contain all kinds, if they have at least a third of the kinds each."""


def take_sample(mutations: Sequence[Mutation], size: int, offset: int) -> list[Mutation]:
    """Return one mutation of each of `size` kinds, evenly spread; the offset shifts the kinds."""
    kinds = list(_group_by_kind(mutations).values())
    size = min(size, len(kinds))
    shift = offset % OFFSETS / OFFSETS
    chosen = [kinds[int((number + shift) * len(kinds) / size)] for number in range(size)]
    return [items[offset % len(items)] for items in chosen]


def take_from_each_kind(mutations: Sequence[Mutation], count: int) -> list[Mutation]:
    """Return the first mutations of each kind."""
    return [one for items in _group_by_kind(mutations).values() for one in items[:count]]


def _group_by_kind(mutations: Sequence[Mutation]) -> dict[str, list[Mutation]]:
    by_kind: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        by_kind.setdefault(mutation.kind, []).append(mutation)
    return by_kind
