"""Pairing the items of two sequences by a match function: in order, and in any order.

A match function need not be an equality (arguments may match by any function). This rules out
hashing, and `difflib` looks for long runs instead of the largest number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

Pairs = tuple[tuple[int, int], ...]
"""Indices into the first and the second sequence; each index at most once."""


def pair_in_order(
    first: Sequence[A], second: Sequence[B], is_match: Callable[[A, B], bool]
) -> Pairs:
    """Return the largest set of matching pairs that keeps both orders.

    This is a longest common subsequence, by dynamic programming over suffixes (Cormen,
    Leiserson, Rivest, Stein: Introduction to Algorithms, "Longest common subsequence"); of
    several, the one with the earliest pairs.
    """
    table = [[is_match(a, b) for b in second] for a in first]
    best = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i in reversed(range(len(first))):
        for j in reversed(range(len(second))):
            skipped = max(best[i + 1][j], best[i][j + 1])
            # Skipping a matching pair never helps: it costs either side one pair at most.
            best[i][j] = best[i + 1][j + 1] + 1 if table[i][j] else skipped
    pairs, i, j = [], 0, 0
    while i < len(first) and j < len(second):
        if table[i][j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i + 1][j] == best[i][j]:
            i += 1
        else:
            j += 1
    return tuple(pairs)


def pair_in_any_order(
    first: Sequence[A], second: Sequence[B], is_match: Callable[[A, B], bool]
) -> Pairs:
    """Return the largest set of matching pairs in any order: a maximum bipartite matching.

    A greedy choice can use up an item that another one needs; augmenting paths (Kuhn 1955,
    "The Hungarian method"; Berge 1957) correct it. The search is breadth-first, not recursive,
    so the length of a trajectory is not limited by the stack.
    """
    candidates = [[j for j, b in enumerate(second) if is_match(a, b)] for a in first]
    partners: dict[int, int] = {}
    for i in range(len(first)):
        _augment_matching(i, candidates, partners)
    return tuple(sorted((i, j) for j, i in partners.items()))


def _augment_matching(
    start: int, candidates: Sequence[Sequence[int]], partners: dict[int, int]
) -> None:
    """Match `start` along an augmenting path to a free partner, if there is one."""
    predecessors: dict[int, int] = {}
    queue = [start]
    for i in queue:
        for j in candidates[i]:
            if j in predecessors:
                continue
            predecessors[j] = i
            if j not in partners:
                _move_along_path(j, start, predecessors, partners)
                return
            queue.append(partners[j])


def _move_along_path(
    free: int, start: int, predecessors: dict[int, int], partners: dict[int, int]
) -> None:
    j = free
    while True:
        i = predecessors[j]
        previous = next((old for old, owner in partners.items() if owner == i), None)
        partners[j] = i
        if i == start or previous is None:
            return
        j = previous
