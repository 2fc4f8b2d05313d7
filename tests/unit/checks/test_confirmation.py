from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from ci_agent_eval.checks import ConfirmedTools
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.errors import InputError
from tests.builders import talk, tool_call, turn
from tests.tables import each_row

ASKED = turn("Refund order 1001?")
REFUND = turn("Refunded.", tool_calls=[tool_call("refund")])
FIRST = turn("Looking.", tool_calls=[tool_call("find")])
YES = r"(?is)^(yes|ok)\b(?!.*\bno\b)"


def of(episode, **options):
    (found,) = ConfirmedTools("refund", **{"said": YES, **options}).assertions(episode)
    return found.passed, found.score, found.reason


@each_row(
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
        (["Refund 1001", ASKED, "yes", turn("Which card?"), "wait, not yet", REFUND], False),
        (["Refund 1001", ASKED, "yes", REFUND, "and 1002 too", REFUND], False),  # it is spent
        ([ASKED, "yes", REFUND], True),  # the agent speaks first
    ],
)
def test_the_yes_stands_between_the_question_and_the_call(turns, passed):
    assert of(talk(*turns))[0] is passed


def test_a_call_that_was_not_confirmed_is_named_with_what_the_user_said():
    passed, score, reason = of(talk("a", ASKED, "yes", REFUND, "more", REFUND))
    assert (passed, score) == (False, 0.5)
    assert reason == "not confirmed: refund(order_id=1001) after the user said 'more'"


def test_within_lets_the_yes_be_an_earlier_message():
    episode = talk("Refund 1001", ASKED, "yes", turn("Which card?"), "the Visa", REFUND)
    assert of(episode, within=2)[0]
    longer = talk("x", ASKED, "yes", ASKED, "a", ASKED, "b", REFUND)
    assert not of(longer, within=2)[0]
    assert of(longer, within=3)[0]


def test_a_call_that_failed_does_not_spend_the_yes():
    failed = turn("Which card?", tool_calls=[tool_call("refund", error="no card")])
    assert of(talk("Refund 1001", ASKED, "yes", failed, "the Visa", REFUND), within=2)[0]


def test_the_name_says_what_is_wanted():
    (found,) = ConfirmedTools(["refund", "cancel"], said=YES).assertions(talk("a"))
    assert found.name == "asks before it calls refund, cancel"


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


def judged(episode, *passes, said=YES):
    judge = Judge(list(passes))
    check = ConfirmedTools("refund", said=said, judge=judge)
    (found,) = asyncio.run(check.assertions(episode))
    return found.passed, found.reason, judge.shown


def test_a_judge_decides_about_the_other_calls_and_sees_nothing_later():
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


def test_a_judge_is_not_asked_where_the_words_confirm():
    episode = talk("Refund 1001", ASKED, "yes", REFUND)
    assert judged(episode)[::2] == (True, [])
    assert judged(episode, True, said=None)[::2] == (True, [["refund"]])
    assert not judged(talk("Refund 1001", ASKED, "no", REFUND), False)[0]


@each_row(
    ("options", "sentence"),
    [
        ({"said": "("}, r"ConfirmedTools\.said: '\(' is not a regular expression"),
        ({"asked": 3}, r"ConfirmedTools\.asked: 3 is not a regular expression"),
        ({"within": 0}, r"ConfirmedTools\.within: must be a whole number of at least 1"),
        ({"said": None}, r"ConfirmedTools: give `said`, a pattern of the user's agreement, or a j"),
        ({"judge": "openai:gpt-5-mini"}, r"ConfirmedTools\.judge: must be a Check, as a Rubric"),
    ],
)
def test_what_means_nothing_is_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        ConfirmedTools("refund", **{"said": YES, **options})
