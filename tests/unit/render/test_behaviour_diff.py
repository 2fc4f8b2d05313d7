"""A pair as a diff: prefixes, widths and counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.behaviour_pairs import BehaviourPair, CutText, ExchangeSide
from ci_agent_eval.render.behaviour_diff import WIDTH, list_diff_lines


def side(answer="fine", user="hi", calls=(), left_out=0, more=0):
    return ExchangeSide(CutText(user), tuple(calls), more, CutText(answer, left_out))


def diff(now, before=None, **options):
    return list_diff_lines(BehaviourPair("a", None, 1, now, before), **options)


def test_a_budget_is_about_calls_only():
    shown = diff(side("b", calls=["x", "y"]), side("a", calls=["x"]), only_calls=True)
    assert shown == ["@@ tool calls: before (-), now (+) @@", "- x", "+ x → y"]


def test_no_call_and_no_answer_are_said():
    shown = diff(side("", calls=[]), side("a", calls=["x"]))
    assert shown[-5:] == [
        "- x",
        "+ (no call)",
        "@@ answer: before (-), now (+) @@",
        "- a",
        "+ (no answer)",
    ]


def test_long_answers_have_three_lines_and_the_rest_is_counted():
    text = "word " * 119 + "word"
    lines = [line for line in diff(side(text, left_out=100), side("a")) if line.startswith("+ ")]
    assert len(lines) == 3
    kept = " ".join(line.removeprefix("+ ") for line in lines).partition(" … (")[0]
    assert lines[-1].endswith(f"… ({len(text) + 100 - len(kept)} more characters)")


def test_calls_have_two_lines_and_the_rest_is_counted():
    calls = [f"tool_number_{n}" for n in range(20)]
    lines = [line for line in diff(side(calls=calls, more=5), side()) if line.startswith("+ ")]
    assert len(lines) == 2
    shown = sum(line.count("tool_number") for line in lines)
    assert lines[-1].endswith(f"… {25 - shown} more")


@given(
    text=st.text(max_size=900),
    calls=st.lists(st.text(max_size=200), max_size=20),
    left_out=st.integers(0, 10**6),
)
def test_every_line_has_a_prefix_and_fits(text, calls, left_out):
    for before in (None, side("other")):
        for line in diff(side(text, user=text, calls=calls, left_out=left_out), before):
            assert line.startswith(("  ", "- ", "+ ", "@@ "))
            assert len(line) <= WIDTH + 2
            assert len(line.splitlines()) == 1
