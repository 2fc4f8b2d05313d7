from __future__ import annotations

import pytest

from ci_agent_eval.checks import ConfirmedTools
from ci_agent_eval.checks.confirmation import confirms
from ci_agent_eval.errors import InputError
from tests.builders import talk, tool_call, turn

ASKED = turn("Refund order 1001?")
REFUND = turn("Refunded.", tool_calls=[tool_call("refund")])
FIRST = turn("Looking.", tool_calls=[tool_call("find")])


def of(episode, **options):
    (found,) = ConfirmedTools("refund", **options).assertions(episode)
    return found.passed, found.score, found.reason


@pytest.mark.parametrize(
    ("turns", "passed"),
    [
        (["Refund 1001", ASKED, "yes", REFUND], True),
        (["Refund 1001", ASKED, "Yes, please do", FIRST, REFUND], True),
        (["Refund 1001", ASKED, "no", REFUND], False),
        (["Refund 1001", ASKED, "yes... no, wait", REFUND], False),
        (["Refund 1001", ASKED, "yes", "no, wait", REFUND], False),
        (["Refund 1001", ASKED, "what else is there", REFUND], False),
        (["yes, refund 1001", REFUND], False),  # nobody asked
        (["Refund 1001", turn("I could refund it."), "yes", REFUND], False),  # a statement
        (
            ["Refund 1001", turn("Sure?", tool_calls=[tool_call("refund")]), "yes"],
            False,
        ),  # too late
        (["Refund 1001", ASKED, "yes", turn("Which card?"), "the Visa", REFUND], False),
        ([ASKED, "yes", REFUND], True),  # the agent speaks first
    ],
)
def test_the_yes_stands_between_the_question_and_the_call(turns, passed):
    assert of(talk(*turns))[0] is passed


def test_a_call_that_was_not_confirmed_is_named_with_what_the_user_said():
    passed, score, reason = of(talk("a", ASKED, "yes", REFUND, "more", REFUND))
    assert (passed, score) == (False, 0.5)
    assert reason == "not confirmed: refund(order_id=1001) after the user said 'more'"


def test_no_call_needs_no_confirmation():
    assert of(talk("a", FIRST)) == (True, 1, "never called")


def test_each_confirmed_call_is_counted():
    assert of(talk("a", ASKED, "ok", REFUND))[2] == "1 call, each confirmed"


def test_within_lets_the_yes_be_an_earlier_message():
    episode = talk("Refund 1001", ASKED, "yes", turn("Which card?"), "the Visa", REFUND)
    assert of(episode, within=2)[0]
    assert not of(talk("x", ASKED, "yes", ASKED, "a", ASKED, "b", REFUND), within=2)[0]


def test_what_is_said_and_asked_may_be_patterns_or_functions():
    episode = talk("Erstatten?", turn("Soll ich 1001 erstatten?"), "Ja, bitte", REFUND)
    assert not of(episode)[0]
    assert of(episode, said=r"(?i)\bja\b", asked=r"erstatten\?")[0]
    assert of(episode, said=lambda text: "bitte" in text)[0]
    assert not of(episode, said=r"(?i)\bja\b", asked="umtauschen")[0]


def test_the_name_says_what_is_wanted():
    (found,) = ConfirmedTools(["refund", "cancel"]).assertions(talk("a"))
    assert found.name == "asks before it calls refund, cancel"


@pytest.mark.parametrize("text", ["Yes", "yes!", "OK", "sure, go ahead", "Please do it", "confirm"])
def test_words_that_confirm(text):
    assert confirms(text)


@pytest.mark.parametrize(
    "text", ["", "no", "yesterday", "don't do it", "don’t, ok", "ok, never mind", "please", "book"]
)
def test_words_that_do_not(text):
    assert not confirms(text)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"said": "("}, r"ConfirmedTools\.said: '\(' is no regular expression"),
        ({"asked": 3}, r"ConfirmedTools\.asked: 3 is no regular expression"),
        ({"within": 0}, r"ConfirmedTools\.within: must be a whole number from 1"),
    ],
)
def test_what_means_nothing_is_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        ConfirmedTools("refund", **options)
