"""Pairing two sequences whose items fit or do not: in order, and in any order.

What fits need be no equality (arguments may match by any function), so neither hashing nor
`difflib`, which looks for long runs and not for the most pairs, will do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")

Pairs = tuple[tuple[int, int], ...]
"""Places in the first and the second sequence; each place at most once."""


def pair_in_order(first: Sequence[A], second: Sequence[B], fits: Callable[[A, B], bool]) -> Pairs:
    """Return the most pairs that fit and keep both orders: a longest common subsequence.

    Dynamic programming over suffixes (Cormen, Leiserson, Rivest, Stein: Introduction to
    Algorithms, "Longest common subsequence"); of equals, the earliest pairs.
    """
    table = [[fits(a, b) for b in second] for a in first]
    best = [[0] * (len(second) + 1) for _ in range(len(first) + 1)]
    for i in reversed(range(len(first))):
        for j in reversed(range(len(second))):
            skipped = max(best[i + 1][j], best[i][j + 1])
            # A pair that fits is never worth leaving out: it costs either side one pair at most.
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
    first: Sequence[A], second: Sequence[B], fits: Callable[[A, B], bool]
) -> Pairs:
    """Return the most pairs that fit, in any order: a maximum bipartite matching.

    Taking the first that fits can spend an item another one needs; augmenting paths
    (Kuhn 1955, "The Hungarian method"; Berge 1957) move it. Paths are searched level by
    level, not by recursion, so that no length of a trajectory is too long.
    """
    fitting = [[j for j, b in enumerate(second) if fits(a, b)] for a in first]
    taken: dict[int, int] = {}
    for i in range(len(first)):
        _augment_matching(i, fitting, taken)
    return tuple(sorted((i, j) for j, i in taken.items()))


def _augment_matching(start: int, fitting: Sequence[Sequence[int]], taken: dict[int, int]) -> None:
    """Find a place for `start`, moving others along a path to a free place, if there is one."""
    came_from: dict[int, int] = {}
    waiting = [start]
    for i in waiting:
        for j in fitting[i]:
            if j in came_from:
                continue
            came_from[j] = i
            if j not in taken:
                _move_along_path(j, start, came_from, taken)
                return
            waiting.append(taken[j])


def _move_along_path(
    free: int, start: int, came_from: dict[int, int], taken: dict[int, int]
) -> None:
    place = free
    while True:
        mover = came_from[place]
        left = next((j for j, i in taken.items() if i == mover), None)
        taken[place] = mover
        if mover == start or left is None:
            return
        place = left
