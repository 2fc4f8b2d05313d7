from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from ci_agent_eval.checks import ConfirmedTools
from ci_agent_eval.checks.confirmation_phrases import ENGLISH, ConfirmationPhrases
from ci_agent_eval.contract.episode import Assertion
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
        (["Refund 1001", ASKED, "yes", turn("Which card?"), "the Visa", REFUND], True),
        (["Refund 1001", ASKED, "yes", turn("Which card?"), "wait, not yet", REFUND], False),
        (["Refund 1001", ASKED, "yes", REFUND, "and 1002 too", REFUND], False),  # it is spent
        (["Refund 1001", turn("Please confirm the refund."), "Yes, please proceed", REFUND], True),
        (["Refund 1001", turn("Once you confirm, I'll refund."), "Yes, no bags", REFUND], True),
        (["Refund 1001", turn("Please confirm which order."), "yes, 1001", REFUND], False),
        (["Refund 1001", turn("Anything else I can do?"), "yes, refund 1002", REFUND], False),
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
    assert not of(episode, within=1)[0]
    longer = talk("x", ASKED, "yes", ASKED, "a", ASKED, "b", REFUND)
    assert not of(longer)[0]
    assert of(longer, within=3)[0]


def test_a_call_that_failed_does_not_spend_the_yes():
    failed = turn("Which card?", tool_calls=[tool_call("refund", error="no card")])
    assert of(talk("Refund 1001", ASKED, "yes", failed, "the Visa", REFUND))[0]


def test_what_is_said_and_asked_may_be_patterns_or_functions():
    episode = talk("Erstatten?", turn("Soll ich 1001 erstatten?"), "Ja, bitte", REFUND)
    assert not of(episode)[0]
    assert of(episode, said=r"(?i)\bja\b", asked=r"erstatten\?")[0]
    assert of(episode, said=lambda text: "bitte" in text)[0]
    assert not of(episode, said=r"(?i)\bja\b", asked="umtauschen")[0]


def test_the_name_says_what_is_wanted():
    (found,) = ConfirmedTools(["refund", "cancel"]).assertions(talk("a"))
    assert found.name == "asks before it calls refund, cancel"


GERMAN = ConfirmationPhrases(
    asks=[r"\bsoll ich\b", r"\bbestätigen sie\b"],
    open_questions=[r"\b(welche|was|wann|wie)"],
    agrees=[r"^(ja|gern|einverstanden)\b"],
    refuses=[r"^(nein|halt|stopp)\b", r"\bdoch nicht\b"],
)


@pytest.mark.parametrize(
    ("asked", "said", "passed"),
    [
        ("Bitte bestätigen Sie die Erstattung.", "Ja, bitte.", True),
        ("Soll ich 1001 erstatten?", "Gern!", True),
        ("Soll ich 1001 erstatten?", "Ja … nein, doch nicht.", False),
        ("Welche soll ich erstatten?", "Ja, 1001.", False),
        ("Refund order 1001?", "Yes.", False),
    ],
)
def test_another_language_is_a_setting(asked, said, passed):
    episode = talk("Erstatten?", turn(asked), said, REFUND)
    assert of(episode, language=GERMAN)[0] is passed
    assert of(episode, language=[ENGLISH, GERMAN])[0] is (passed or asked.startswith("Refund"))


@dataclass(frozen=True)
class Judge:
    """Agrees with the first calls it is asked about, and keeps what it was shown."""

    passes: list[bool]
    shown: list[list[str]] = field(default_factory=list)

    async def assertions(self, episode):
        calls = [call.name for turn in episode.trajectory.turns for call in turn.tool_calls]
        self.shown.append(calls)
        passed = self.passes.pop(0)
        return (Assertion(name="confirmed", passed=passed, reason="so it reads"),)


def judged(episode, *passes):
    judge = Judge(list(passes))
    (found,) = asyncio.run(ConfirmedTools("refund", judge=judge).assertions(episode))
    return found.passed, found.reason, judge.shown


def test_a_judge_decides_what_the_words_leave_open_and_sees_nothing_later():
    statement = turn("I could refund it.")
    episode = talk("Refund 1001", statement, "Off you go", FIRST, REFUND, "and 2", REFUND)
    passed, reason, shown = judged(episode, True, False)
    assert not passed
    assert reason == (
        "not confirmed: refund(order_id=1001) after the user said 'and 2' (the judge: so it reads)"
    )
    assert shown == [["find", "refund"], ["find", "refund", "refund"]]
    assert judged(episode, True, True)[:2] == (
        True,
        "2 calls, each confirmed; the judge: so it reads, so it reads",
    )


@pytest.mark.parametrize(("said", "passed"), [("yes", True), ("no, stop", False)])
def test_a_judge_is_not_asked_where_the_words_say_it(said, passed):
    assert judged(talk("Refund 1001", ASKED, said, REFUND))[::2] == (passed, [])


@pytest.mark.parametrize(
    "text",
    [
        "Yes", "yes!", "OK", "sure, go ahead", "Please do it", "confirm", "I confirm that",
        "Yes, book it. I don't need insurance, and no bags.", "Everything looks good to me.",
    ],
)  # fmt: skip
def test_words_that_confirm(text):
    assert ENGLISH.is_agreement(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "no", "yesterday", "don't do it", "don’t, ok", "ok, never mind", "please", "book",
        "Make sure it is cheap", "yes - wait, not yet", "Yes. Actually, I changed my mind.",
    ],
)  # fmt: skip
def test_words_that_do_not(text):
    assert not ENGLISH.is_agreement(text)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"said": "("}, r"ConfirmedTools\.said: '\(' is no regular expression"),
        ({"asked": 3}, r"ConfirmedTools\.asked: 3 is no regular expression"),
        ({"within": 0}, r"ConfirmedTools\.within: must be a whole number of at least 1"),
        ({"language": "de"}, r"ConfirmedTools\.language: must be ConfirmationPhrases or a list"),
        ({"language": []}, r"ConfirmedTools\.language: must be ConfirmationPhrases or a list"),
        ({"judge": "openai:gpt-5-mini"}, r"ConfirmedTools\.judge: must be a Check, as a Rubric"),
    ],
)
def test_what_means_nothing_is_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        ConfirmedTools("refund", **options)


def test_phrases_without_patterns_are_refused():
    with pytest.raises(InputError, match=r"ConfirmationPhrases\.agrees: must be one or more"):
        ConfirmationPhrases(asks="a", open_questions="b", agrees=[], refuses="c")
