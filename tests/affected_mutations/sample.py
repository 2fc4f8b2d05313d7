"""A sample of the mutations for CI."""

from __future__ import annotations

from collections.abc import Sequence

from tests.affected_mutations.mutation import Mutation

OFFSETS = 3
"""Samples that together contain all kinds, if they have at least a third of the kinds each."""


def take_sample(mutations: Sequence[Mutation], size: int, offset: int) -> list[Mutation]:
    """Return one mutation of each of `size` kinds, evenly spread; the offset shifts the kinds."""
    by_kind: dict[str, list[Mutation]] = {}
    for mutation in mutations:
        by_kind.setdefault(mutation.kind, []).append(mutation)
    kinds = list(by_kind.values())
    size = min(size, len(kinds))
    shift = offset % OFFSETS / OFFSETS
    chosen = [kinds[int((number + shift) * len(kinds) / size)] for number in range(size)]
    return [items[offset % len(items)] for items in chosen]
