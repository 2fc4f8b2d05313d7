from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.checks.alignment import pair_in_any_order, pair_in_order

WORDS = st.text(alphabet="abc", max_size=7)
RELATIONS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)))
SIZES = st.integers(0, 6)


def equal(one, other):
    return one == other


def longest_by_trying(first, second):
    """The longest common subsequence's length, by trying every subsequence."""
    return max(
        length
        for length in range(len(first) + 1)
        for kept in itertools.combinations(first, length)
        if is_subsequence(kept, second)
    )


def is_subsequence(kept, of):
    rest = iter(of)
    return all(item in rest for item in kept)


def most_by_trying(size, other, relation):
    """The size of the largest matching, by trying every injection."""
    places = [*range(other), *[None] * size]
    return max(
        (
            sum((i, j) in relation for i, j in enumerate(chosen) if j is not None)
            for chosen in itertools.permutations(places, size)
        ),
        default=0,
    )


@given(WORDS, WORDS)
def test_an_alignment_is_a_longest_common_subsequence(first, second):
    pairs = pair_in_order(first, second, equal)
    assert len(pairs) == longest_by_trying(first, second)
    assert all(first[i] == second[j] for i, j in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(pairs))


@given(WORDS, WORDS)
def test_an_alignment_is_as_long_both_ways(first, second):
    assert len(pair_in_order(first, second, equal)) == len(pair_in_order(second, first, equal))
    assert len(pair_in_order(first, second, equal)) <= min(len(first), len(second))
    assert len(pair_in_order(first, first, equal)) == len(first)


@given(st.integers(0, 4), st.integers(0, 4), RELATIONS)
def test_a_matching_has_the_most_pairs_there_can_be(size, other, relation):
    pairs = pair_in_any_order(range(size), range(other), lambda i, j: (i, j) in relation)
    assert len(pairs) == most_by_trying(size, other, relation)
    assert set(pairs) <= relation
    assert len({i for i, _ in pairs}) == len({j for _, j in pairs}) == len(pairs)


@given(SIZES, SIZES, RELATIONS)
def test_order_can_only_cost_pairs(size, other, relation):
    def fits(i, j):
        return (i, j) in relation

    in_order = pair_in_order(range(size), range(other), fits)
    assert len(in_order) <= len(pair_in_any_order(range(size), range(other), fits))


def test_the_first_that_fits_is_given_up_where_another_needs_it():
    pairs = pair_in_any_order(["any", "a"], ["a", "b"], lambda one, other: one in ("any", other))
    assert pairs == ((0, 1), (1, 0))


def test_long_trajectories_need_no_recursion():
    chain = range(1500)
    assert len(pair_in_any_order(chain, chain, lambda i, j: j in (i, i + 1))) == 1500
