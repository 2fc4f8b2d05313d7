"""The exchange that shows what changed, and how its texts are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.behaviour_pairs import (
    MAX_TEXT,
    choose_pair,
    cut_from_differing_sentence,
    parse_conversation,
)
from tests.builders import tool_call, turn
from tests.tables import each_row

NAME = ("refund", None)


def talk(*exchanges, iteration=1):
    """A conversation of exchanges: the user's message, the called tools, and the answer."""
    turns = []
    for user, tools, answer in exchanges:
        turns.append({"role": "user", "content": user})
        calls = [
            tool_call(one[0], arguments=one[1]) if isinstance(one, tuple) else tool_call(one)
            for one in tools
        ]
        turns += [turn("", tool_calls=calls)] if calls else []
        turns.append(turn(answer))
    return parse_conversation(iteration, turns)


def test_the_first_exchange_with_other_calls_is_shown():
    now = talk(("hi", [], "a"), ("pay", ["refund"], "b"), ("bye", [], "c"))
    before = talk(("hi", [], "z"), ("pay", ["ask", "refund"], "y"), ("bye", [], "x"))
    pair = choose_pair(NAME, [now], [before], {})
    assert (pair.turn, pair.now.user.text, pair.now.answer.text) == (2, "pay", "b")
    assert pair.before.calls == ("ask(order_id=1001)", "refund")
    assert pair.now.calls == ("refund(order_id=1001)",)


def test_equal_messages_come_first_then_short_answers_then_low_iterations():
    long = talk(("hi", [], "a long answer"), iteration=1)
    other = talk(("hello", [], "b"), iteration=2)
    short = talk(("hi", [], "c"), iteration=3)
    again = talk(("hi", [], "d"), iteration=4)
    before = [talk(("hi", [], "z"))]
    assert choose_pair(NAME, [long, other, again, short], before, {}).now.answer.text == "c"


@each_row(
    ("before", "after", "shown"),
    [
        ("No. 30 days.", "Yes. 60 days.", ("No. 30 days.", "Yes. 60 days.")),
        (
            "Hello. It costs $4. Bye.",
            "Hello. It costs $5. Bye.",
            ("… It costs $4. Bye.", "… It costs $5. Bye."),
        ),
        ("Hello. One.", "Hello. One. Two.", ("… One.", "… One. Two.")),
        ("same", "same", ("same", "same")),
        ("", "new", ("", "new")),
    ],
)
def test_texts_start_at_the_first_sentence_that_differs(before, after, shown):
    old, new = cut_from_differing_sentence(before, after)
    assert (old.text, new.text) == shown


@given(before=st.text(max_size=2_000), after=st.text(max_size=2_000))
def test_what_is_left_out_is_counted(before, after):
    for text, cut in zip((before, after), cut_from_differing_sentence(before, after), strict=True):
        kept = (
            cut.text.removeprefix("… ")
            if cut.text.startswith("… ") and not text.startswith("… ")
            else cut.text
        )
        assert len(kept) <= MAX_TEXT + 2
        assert cut.left_out >= 0
        assert kept in text or cut.text in text


def test_of_many_calls_those_around_the_difference_are_kept():
    now = talk(("hi", [f"t{n}" for n in range(50)], "a"))
    before = talk(("hi", [*(f"t{n}" for n in range(30)), "other"], "a"))
    pair = choose_pair(NAME, [now], [before], {})
    assert pair.now.calls[:5] == ("…", "t27", "t28", "t29", "t30(order_id=1001)")
    assert (len(pair.now.calls), pair.now.more_calls) == (21, 3)
    assert pair.before.calls == ("…", "t27", "t28", "t29", "other(order_id=1001)")


def test_long_arguments_and_names_are_cut():
    now = talk(("hi", [("t" * 200, {"q": "x" * 200})], "a"))
    (call,) = choose_pair(NAME, [now], [], {}).now.calls
    assert call.startswith("t" * 80 + '(q="xxx')
    assert call.endswith("x…)")
    assert len(call) < 170
