from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.checks import TrajectoryMatch
from ci_agent_eval.contract.trajectory import ToolCall, Trajectory
from ci_agent_eval.errors import InputError
from tests.builders import calling, talk, tool_call
from tests.tables import each_row

MODES = ("strict", "unordered", "subset", "superset", "in_order")
CALL = st.builds(
    lambda name, value: {"name": name, "arguments": {"x": value}},
    st.sampled_from("abc"),
    st.integers(0, 1),
)
CALLS = st.lists(CALL, max_size=6)
SOME = st.lists(CALL, min_size=1, max_size=6)


def of(reference, *calls, **options):
    (found,) = TrajectoryMatch(reference, **options).assertions(calling(*calls))
    return found


def score(reference, calls, mode, **options):
    return of(reference, *calls, mode=mode, **options).score


@each_row(
    ("mode", "calls", "passed", "points"),
    [
        ("strict", "abc", True, 1),
        ("strict", "acb", False, 2 / 3),
        ("strict", "abcd", False, 6 / 7),
        ("strict", "ab", False, 4 / 5),
        ("strict", "", False, 0),
        ("unordered", "cab", True, 1),
        ("unordered", "caab", False, 6 / 7),
        ("unordered", "xyz", False, 0),
        ("subset", "ca", True, 1),
        ("subset", "", True, 1),
        ("subset", "aa", False, 1 / 2),  # the reference calls it once
        ("subset", "ad", False, 1 / 2),
        ("superset", "cxba", True, 1),
        ("superset", "cx", False, 1 / 3),
        ("in_order", "axbxcx", True, 1),
        ("in_order", "cba", False, 1 / 3),
        ("in_order", "ac", False, 2 / 3),
    ],
)
def test_modes(mode, calls, passed, points):
    found = of(list("abc"), *calls, mode=mode)
    assert (found.passed, found.score) == (passed, pytest.approx(points))


@each_row(
    ("mode", "says"),
    [
        ("strict", "makes exactly the reference's tool calls"),
        ("unordered", "makes the reference's tool calls in any order"),
        ("subset", "makes no tool calls but the reference's"),
        ("superset", "makes all of the reference's tool calls"),
        ("in_order", "makes the reference's tool calls in order"),
    ],
)
def test_names(mode, says):
    assert of(["a"], mode=mode).name == says


@each_row(
    ("mode", "reason"),
    [
        (
            "strict",
            (
                "1 of the reference's 2 calls made; missing: refund(usd=5); "
                "not of the reference: refund(usd=9), note"
            ),
        ),
        ("superset", "1 of the reference's 2 calls made; missing: refund(usd=5)"),
        ("subset", "1 of the reference's 2 calls made; not of the reference: refund(usd=9), note"),
    ],
)
def test_a_reason_names_what_the_mode_asks_for(mode, reason):
    wanted = ["find", ("refund", {"usd": 5})]
    made = ["find", tool_call("refund", arguments={"usd": 9}), tool_call("note", arguments=None)]
    assert of(wanted, *made, mode=mode).reason == reason.replace("note", "note()")


def test_the_same_calls_in_another_order_are_said_to_be_that():
    assert "the order differs" in of(["a", "b"], "b", "a").reason
    assert "the order differs" not in of(["a", "b"], "c", "a").reason


def test_a_reference_may_be_written_in_many_ways():
    made = tool_call("find", arguments={"id": 1})
    ways = [
        ["find"],
        [("find", {"id": 1})],
        [["find", {"id": 1}]],
        [{"name": "find"}],
        [{"name": "find", "arguments": {"id": 1}}],
        [ToolCall(name="find", arguments={"id": 1}, result="else")],
        calling(made),
        calling(made).trajectory,
    ]
    assert all(of(way, made).passed for way in ways)
    other = tool_call("find", arguments={"id": 2})
    assert [of(way, other).passed for way in ways] == [True, False, False, True] + [False] * 4


def test_nothing_against_nothing_matches():
    for mode in ("strict", "unordered", "subset"):
        assert of(Trajectory(), mode=mode).passed
    assert TrajectoryMatch([]).assertions(talk("hello"))[0].passed


def test_single_tools_have_rules_of_their_own():
    reference = [("find", {"q": "shoes", "limit": 5}), ("refund", {"usd": 5})]
    made = [
        tool_call("find", arguments={"q": "boots", "limit": 5}),
        tool_call("refund", arguments={"usd": 5}),
    ]
    assert not of(reference, *made).passed
    assert of(reference, *made, overrides={"find": "ignore"}).passed
    assert of(reference, *made, overrides={"find": ["limit"]}).passed
    assert of(reference, *made, overrides={"find": lambda got, want: got["q"] == "boots"}).passed
    assert not of(reference, *made, arguments="ignore", overrides={"find": "exact"}).passed


def test_an_override_holds_for_a_tool_that_is_only_named():
    made = tool_call("find", arguments={"id": 1})
    assert not of(["find"], made, overrides={"find": "exact"}).passed


def test_a_call_that_fits_several_is_given_to_where_it_is_needed():
    made = [tool_call("find", arguments={"id": 1}), tool_call("find", arguments={"id": 2})]
    assert of(["find", ("find", {"id": 1})], *made, mode="unordered").passed
    long = [("find", {"id": n}) for n in range(600)]
    made = [tool_call("find", arguments={"id": n}) for n in reversed(range(600))]
    assert of(long, *made, mode="unordered").passed


def test_a_threshold_lets_part_of_it_pass():
    found = of(["a", "b", "c"], "a", "b", threshold=0.8)
    assert (found.passed, found.score) == (True, 0.8)


@given(SOME, CALLS)
def test_modes_are_as_strict_as_their_names(reference, calls):
    passed = {mode: of(reference, *calls, mode=mode).passed for mode in MODES}
    assert passed["unordered"] == (passed["subset"] and passed["superset"])
    assert passed["strict"] <= passed["unordered"]
    assert passed["strict"] == (passed["in_order"] and len(reference) == len(calls))
    assert passed["in_order"] <= passed["superset"]


@each_row(
    ("make", "sentence"),
    [
        (lambda: TrajectoryMatch("find"), "must be a list of calls"),
        (lambda: TrajectoryMatch(3), "must be a list of calls"),
        (lambda: TrajectoryMatch([3]), "3 is not a call; write"),
        (lambda: TrajectoryMatch([{"tool": "x"}]), "is not a call; write"),
        (lambda: TrajectoryMatch([], mode="any_order"), "mode: must be strict, unordered, "),
        (lambda: TrajectoryMatch([], arguments="some"), "arguments: must be exact, "),
        (
            lambda: TrajectoryMatch([], arguments=3),
            "arguments: must be exact, .* a function or a list of texts, got 3",
        ),
        (lambda: TrajectoryMatch([], overrides={"x": "no"}), r"overrides\['x'\]: must be exact, "),
        (
            lambda: TrajectoryMatch([], threshold=2),
            "threshold: must be a number above 0 and up to 1",
        ),
        (
            lambda: TrajectoryMatch(["a"], threshold=0),
            "threshold: must be .*at 0 everything passes",
        ),
        (
            lambda: TrajectoryMatch([], "superset"),
            "reference has no tool calls, .* add one",
        ),
        (lambda: TrajectoryMatch([], "in_order"), "reference has no tool calls"),
        (lambda: TrajectoryMatch(Trajectory(), "superset"), "reference has no tool calls"),
    ],
)
def test_what_means_nothing_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
