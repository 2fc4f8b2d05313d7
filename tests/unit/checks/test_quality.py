from __future__ import annotations

import re

import pytest

from ci_agent_eval.checks import CallsAfterAnswer, ErrorRecovery, Loops, RepeatedCalls, StepRatio
from ci_agent_eval.checks.efficiency import SAYS_SO
from ci_agent_eval.errors import InputError
from tests.builders import calling, talk, turn
from tests.tables import each_row


def of(check, episode):
    (found,) = check.assertions(episode)
    return found.passed, found.score, found.reason


def named(check, episode):
    return check.assertions(episode)[0].name


def find(result="found", **arguments):
    return {"name": "find", "arguments": arguments, "result": result}


FAILED = {"name": "find", "arguments": {}, "error": "timeout"}
HELD = {"name": "find", "arguments": {}, "result": "found 39", "steered_by": "a-rule"}

# Steps


@each_row(
    ("check", "calls", "said"),
    [
        (StepRatio(2), "ab", (True, 1, "it took 2 tool calls, 1 times as many")),
        (StepRatio(2), "abc", (False, 2 / 3, "it took 3 tool calls, 1.5 times as many")),
        (StepRatio(2, 1.5), "abc", (True, 2 / 3, "it took 3 tool calls, 1.5 times as many")),
        (StepRatio(2), "", (False, 0, "it took no tool call at all")),
        (StepRatio(1, of="turns"), "abc", (False, 0.5, "it took 2 turns, 2 times as many")),
        (StepRatio(calling("a", "b")), "a", (True, 1, "it took 1 tool call, 0.5 times as many")),
        (
            StepRatio(calling("a").trajectory, of="turns"),
            "abc",
            (True, 1, "it took 2 turns, 1 times as many"),
        ),
    ],
)
def test_steps_against_the_reference_s(check, calls, said):
    assert of(check, calling(*calls)) == said


def test_names_of_steps():
    assert named(StepRatio(4), calling()) == "takes no more than the reference's 4 tool calls"
    assert (
        named(StepRatio(1, 1.5, "turns"), calling())
        == "takes at most 1.5 times the reference's 1 turn"
    )


# Repeats


@each_row(
    ("check", "calls", "said"),
    [
        (RepeatedCalls(), [find(q=1), find(q=2)], (True, 1, "2 calls, none again")),
        (RepeatedCalls(), [find(q=1), "note", find(q=1)], (False, 2 / 3, "made again: find(q=1)")),
        (RepeatedCalls(1), [find(q=1), find(q=1)], (True, 0.5, "made again: find(q=1)")),
        (
            RepeatedCalls(),
            [find(a=1, b=2), find(b=2, a=1)],
            (False, 0.5, "made again: find(b=2, a=1)"),
        ),
        (RepeatedCalls(), [FAILED, FAILED, FAILED], (True, 1, "3 calls, none again")),
        (RepeatedCalls(), [FAILED, find(), find()], (False, 2 / 3, "made again: find()")),
        (RepeatedCalls(ignore="find"), [find(), find(), "note"], (True, 1, "1 call, none again")),
        (RepeatedCalls(), [], (True, 1, "0 calls, none again")),
    ],
)
def test_repeats(check, calls, said):
    assert of(check, calling(*calls)) == said


@each_row(
    ("check", "calls", "said"),
    [
        (Loops(), "aab", (True, 1, "3 calls, no loop")),
        (Loops(), "aaab", (False, 0.75, "3 times in a row: a()")),
        (Loops(), "xababab", (False, 5 / 7, "3 times in a row: a(), b()")),
        (Loops(), "xabab", (True, 1, "5 calls, no loop")),
        (Loops(1), "xabab", (False, 3 / 5, "twice in a row: a(), b()")),
        (Loops(longest=1), "abababab", (True, 1, "8 calls, no loop")),
        (Loops(), "aaaabcabcabcabc", (False, 9 / 15, "4 times in a row: a(), b(), c()")),
        (Loops(), "", (True, 1, "0 calls, no loop")),
    ],
)
def test_loops(check, calls, said):
    assert of(check, calling(*calls)) == said


# The answer


@each_row(
    ("check", "calls", "said"),
    [
        (
            CallsAfterAnswer("$5"),
            [find("no"), find("it is $5")],
            (True, 1, "find() told it; after it: none"),
        ),
        (
            CallsAfterAnswer("$5"),
            [find("it is $5"), find("no", q=2)],
            (False, 0.5, "find() told it; after it: find(q=2)"),
        ),
        (
            CallsAfterAnswer("$5", at_most=1),
            [find("it is $5"), find("no", q=2)],
            (True, 0.5, "find() told it; after it: find(q=2)"),
        ),
        (CallsAfterAnswer("$5"), [find("no")], (False, 0, "no tool told the answer")),
        (CallsAfterAnswer("timeout"), [FAILED], (False, 0, "no tool told the answer")),
        (
            CallsAfterAnswer('"usd": 5'),
            [find({"usd": 5})],
            (True, 1, "find() told it; after it: none"),
        ),
        (
            CallsAfterAnswer(re.compile(r"\$\d")),
            [find("it is $5"), "note"],
            (False, 0.5, "find() told it; after it: note()"),
        ),
        (
            CallsAfterAnswer(lambda result: result == ["x"]),
            [find("x"), find(["x"])],
            (True, 1, "find() told it; after it: none"),
        ),
    ],
)
def test_calls_after_the_answer(check, calls, said):
    assert of(check, calling(*calls)) == said


def test_what_the_user_asks_next_is_another_matter():
    looks = turn("$5", tool_calls=[find("it is $5")])
    assert of(CallsAfterAnswer("$5"), talk("how much?", looks, "and that?", looks))[0]


# Recovery


@each_row(
    ("calls", "reply", "said"),
    [
        (["find"], "Done.", (True, 1, "no tool reported an error")),
        ([FAILED, find()], "Done.", (True, 1, "made good: 1 error")),
        ([FAILED, FAILED, find()], "Done.", (True, 1, "made good: 2 errors")),
        ([FAILED], "Done.", (False, 0, 'never made good, nor told: find(): "timeout"')),
        ([find(), FAILED], "Done.", (False, 0, 'never made good, nor told: find(): "timeout"')),
        ([FAILED], "Sorry, the search is down.", (True, 1, "made good: 1 error")),
        ([FAILED, "note"], "I couldn't look it up.", (True, 1, "made good: 1 error")),
        (
            [FAILED, find(), {"name": "note", "error": "full"}],
            "Done.",
            (False, 0.5, 'never made good, nor told: note(): "full"'),
        ),
    ],
)
def test_recovery(calls, reply, said):
    assert of(ErrorRecovery(), calling(*calls, reply=reply)) == said


def test_recovery_may_come_in_a_later_exchange():
    failed, works = turn("Hm.", tool_calls=[FAILED]), turn("Done.", tool_calls=[find()])
    assert of(ErrorRecovery(), talk("a", failed, "again", works))[0]
    assert not of(ErrorRecovery(), talk("a", works, "again", failed))[0]
    assert not of(ErrorRecovery(), talk("sorry, a problem", failed))[0]  # the user's words


def test_recovery_of_some_tools_and_in_other_words():
    failed = calling(FAILED, reply="Das ging schief.")
    assert of(ErrorRecovery(says_so="schief"), failed)[0]
    assert of(ErrorRecovery(tools="note"), failed) == (True, 1, "no tool reported an error")
    assert named(ErrorRecovery(), failed) == "recovers from errors of tools"


@each_row(
    "text",
    ["I can't do that", "I can’t", "that failed", "an error came up", "Unfortunately", "not found"],
)
def test_words_that_say_so(text):
    assert SAYS_SO.search(text)


def test_words_that_do_not():
    assert not SAYS_SO.search("Your failsafe canteen is ready; terrors await.")


@each_row(
    ("make", "sentence"),
    [
        (lambda: StepRatio(0), r"StepRatio\.reference: must be a whole number of at least 1"),
        (
            lambda: StepRatio(calling()),
            r"StepRatio\.reference: must be a whole number of at least 1",
        ),
        (lambda: StepRatio(1, -1), r"StepRatio\.at_most: must be a number of at least 0"),
        (lambda: StepRatio(1, float("nan")), r"StepRatio\.at_most: must be a number of at least 0"),
        (lambda: StepRatio(1, of="steps"), r"StepRatio\.of: must be tool_calls or turns, got"),
        (
            lambda: RepeatedCalls(-1),
            r"RepeatedCalls\.at_most: must be a whole number of at least 0",
        ),
        (lambda: Loops(0), r"Loops\.at_most: must be a whole number of at least 1"),
        (lambda: Loops(longest=0), r"Loops\.longest: must be a whole number of at least 1"),
        (lambda: CallsAfterAnswer(""), r"CallsAfterAnswer\.answer: must be a text that is not"),
        (lambda: CallsAfterAnswer(3), r"CallsAfterAnswer\.answer: 3 is not a regular expression"),
        (lambda: ErrorRecovery(says_so="("), r"ErrorRecovery\.says_so: '\(' is not a regular"),
    ],
)
def test_what_means_nothing_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


def test_what_steering_held_back_did_not_work():
    held_then_made = calling(HELD, find("39"))
    assert of(RepeatedCalls(), held_then_made) == (True, 1, "2 calls, none again")
    assert of(CallsAfterAnswer("39"), held_then_made)[0] is True
    assert of(ErrorRecovery(), calling(FAILED, HELD))[0] is False
