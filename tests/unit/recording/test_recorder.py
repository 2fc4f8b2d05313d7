"""The recorder: what a test says becomes an Episode, and nothing bad gets in."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.checks import ForbiddenTools
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import TokenUsage, Turn
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.episodes.repository_paths import RepositoryPaths
from ci_agent_eval.recording import EpisodeRecorder, list_failure_reasons
from ci_agent_eval.storage.ledger.limits import SuiteUsage


def stepping_clock(step: float = 0.1) -> Callable[[], float]:
    """Each look at the clock is a step later than the one before."""
    steps = itertools.count()
    return lambda: next(steps) * step


def a_recorder(**fields: Any) -> EpisodeRecorder:
    fields.setdefault("clock", stepping_clock())
    return EpisodeRecorder("refund", **fields)


def test_a_turn_is_what_the_user_said_and_what_the_agent_did():
    episode = a_recorder()
    with episode.turn("Where is my order?") as turn:
        turn.tool_call("lookup", {"order": 7}, result={"status": "sent"}, id="c1", duration_ms=12)
        turn.reply("On its way.", tokens={"input": 20, "output": 5}, cost_usd=0.01)
    user, agent = episode.turns
    assert (user.role, user.content) == ("user", "Where is my order?")
    assert (agent.role, agent.content, agent.source) == ("assistant", "On its way.", "live")
    assert agent.tokens == TokenUsage(input=20, output=5)
    assert agent.cost_usd == 0.01
    assert [call.name for call in episode.tool_calls] == ["lookup"]
    assert episode.tool_calls[0].result == {"status": "sent"}


def test_latency_runs_to_the_reply_by_the_clock_that_was_given():
    episode = a_recorder()  # looks: 0.0 start, 0.1 turn, 0.2 reply, 0.3 finish
    with episode.turn("Hello") as turn:
        turn.reply("Hi", tokens=5)
    ended = episode.finish()
    assert episode.turns[1].latency_ms == 100
    assert ended.duration_ms == 300


def test_a_latency_of_ones_own_stands():
    episode = a_recorder()
    with episode.turn("Hello") as turn:
        turn.reply("Hi", latency_ms=7.5, source="replayed")
    assert episode.turns[1].latency_ms == 7.5


def test_a_turn_without_a_reply_is_still_a_turn_of_the_agent():
    episode = a_recorder()
    with episode.turn("Hello"):
        pass
    assert [turn.role for turn in episode.turns] == ["user", "assistant"]
    assert episode.turns[1].latency_ms == 100


def test_a_turn_that_breaks_keeps_what_was_there():
    episode = a_recorder()

    def talk():
        with episode.turn("Hello") as turn:
            turn.tool_call("lookup", error=TimeoutError("5 s"))
            raise ConnectionError

    with pytest.raises(ConnectionError):
        talk()
    assert [turn.role for turn in episode.turns] == ["user", "assistant"]
    assert episode.tool_calls[0].error == "TimeoutError: 5 s"


def test_a_turn_that_breaks_before_the_agent_did_anything_is_the_users_alone():
    episode = a_recorder()
    with pytest.raises(ConnectionError), episode.turn("Hello"):
        raise ConnectionError
    assert [turn.role for turn in episode.turns] == ["user"]


def test_what_an_agent_raised_is_told_and_is_no_turn_of_it():
    episode = a_recorder(budgets={"max_turns": 0})
    error = ConnectionError("no <object at 0x7f00>")
    with suppress(ConnectionError), episode.turn("Hello") as turn:
        turn.record_error(error)
        raise error
    user, broke = episode.turns
    assert (user.role, user.content) == ("user", "Hello")
    assert (broke.role, broke.content) == (
        "system",
        "the agent raised ConnectionError: no <object>",
    )
    assert broke.latency_ms == 100
    assert episode.finish().budgets.max_turns.used == 0


def test_a_turn_still_open_at_the_end_is_kept():
    episode = a_recorder()
    turn = episode.turn("Hello").__enter__()
    turn.tool_call("lookup")
    trajectory = episode.finish("error", "timeout").trajectory
    assert trajectory is not None
    assert [call.name for call in trajectory.tool_calls()] == ["lookup"]


def test_tool_calls_of_the_episode_go_to_the_open_turn():
    episode = a_recorder()
    with episode.turn("Hello"):
        episode.tool_call("lookup", {"order": 7})
    assert episode.turns[1].tool_calls[0].arguments == {"order": 7}


def test_a_tool_call_that_was_held_back_says_by_whom():
    episode = a_recorder()
    with episode.turn("hi"):
        episode.tool_call("bash", "pytest", "Run one test.", steered_by="pytest-full-suite")
    (call,) = episode.turns[1].tool_calls
    assert (call.result, call.steered_by, call.has_failed) == (
        "Run one test.",
        "pytest-full-suite",
        True,
    )


def test_checks_go_on_and_fail_the_episode_at_its_end():
    places = iter([("tests/test_a.py", 3), ("tests/test_a.py", 4)])
    episode = a_recorder(locate=lambda: next(places))
    assert episode.check("polite", True) is True
    assert episode.check("asks first", False, "called refund at once", score=0.2) is False
    ended = episode.finish()
    assert ended.outcome == "failed"
    assert ended.reason == "failed: asks first"
    assert [(a.name, a.passed, a.file, a.line) for a in ended.assertions] == [
        ("polite", True, "tests/test_a.py", 3),
        ("asks first", False, "tests/test_a.py", 4),
    ]
    assert list_failure_reasons(ended) == ("tests/test_a.py:4: asks first: called refund at once",)


def test_a_failed_warning_does_not_fail_the_episode():
    episode = a_recorder()
    episode.check("short", False, severity="warning")
    assert episode.finish().outcome == "passed"


def test_a_budget_not_kept_is_a_complaint_and_no_outcome():
    episode = a_recorder(budgets={"tool_calls": 1, "max_turns": {"limit": 0, "hard": False}})
    with episode.turn("Hello") as turn:
        turn.tool_call("a")
        turn.tool_call("b")
    ended = episode.finish()
    assert ended.outcome == "passed"
    assert list_failure_reasons(ended) == ("budget tool_calls: 2, limit 1 (hard)",)


def test_budgets_set_on_the_way_are_measured_or_not_kept():
    episode = a_recorder()
    episode.budget("latency_ms", 50, statistic="max")
    episode.budget("emails", 2, used=1)
    episode.budget("pages", 3, hard=False)
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    ended = episode.finish()
    assert [(v.budget, v.observed, v.hard) for v in ended.violations] == [
        ("latency_ms", 100, True),
        ("pages", None, False),
    ]
    assert ended.budgets.custom["emails"].used == 1


def test_a_token_budget_is_written_as_it_was_measured():
    episode = a_recorder(budgets={"token_usage": 100})
    with episode.turn("Hello") as turn:
        turn.reply("Hi", tokens=5)
    assert '"token_usage":{"limit":100,"used":5}' in canonical_json(episode.finish())


def test_identity_can_be_said_on_the_way():
    episode = a_recorder(agent="desk", metadata={"region": "eu"})
    episode.model = "m-1"
    episode.thread_id = "t-9"
    episode.metadata["tries"] = {1, 2}
    ended = episode.finish()
    assert (ended.agent, ended.model, ended.thread_id) == ("desk", "m-1", "t-9")
    assert ended.metadata == {"region": "eu", "tries": [1, 2]}


def test_two_recorders_share_nothing():
    one, two = a_recorder(), a_recorder()
    with one.turn("Hello"):
        two.check("other", False)
    assert one.finish().assertions == ()
    assert two.finish().trajectory is None


BAD: list[tuple[str, Callable[[EpisodeRecorder], object]]] = [
    ("budget 'tool_calls': limit", lambda e: e.budget("tool_calls", math.nan)),
    ("budget 'mine': limit", lambda e: e.budget("mine", -1)),
    ("budget 'mine': used", lambda e: e.budget("mine", 1, used=math.inf)),
    ("budget 'latency_ms': statistic", lambda e: e.budget("latency_ms", 1, statistic="p96")),
    ("score 'tone': value", lambda e: e.score("tone", math.nan)),
    ("check 'tone': score", lambda e: e.check("tone", True, score=1.5)),
    ("check 'tone': severity", lambda e: e.check("tone", True, severity="fatal")),
    ("check 'tone': `passed` is of type function", lambda e: e.check("tone", lambda: False)),
    ("tool call 'lookup' outside a turn", lambda e: e.tool_call("lookup")),
    ("reply: cost_usd", lambda e: e.turn("x").reply("y", cost_usd=-1)),
    ("reply: latency_ms", lambda e: e.turn("x").reply("y", latency_ms=math.nan)),
    ("reply: source", lambda e: e.turn("x").reply("y", source="dreamt")),
    ("reply: content", lambda e: e.turn("x").reply(None)),
    ("tokens: output", lambda e: e.turn("x").reply("y", tokens=-5)),
    ("tokens: total", lambda e: e.turn("x").reply("y", tokens={"total": 5})),
    ("tool call 'a': duration_ms", lambda e: e.turn("x").tool_call("a", duration_ms=-1)),
    ("a turn is still open", lambda e: (e.turn("x"), e.turn("y"))),
]


@pytest.mark.parametrize(("sentence", "call"), BAD, ids=[sentence for sentence, _ in BAD])
def test_bad_values_raise_where_they_are_said(sentence, call):
    with pytest.raises(InputError) as raised:
        call(a_recorder())
    assert sentence in str(raised.value)


FOUND = Assertion(name="calls refund", passed=False, reason="it did not", score=0.5)

NO_VERDICTS: list[tuple[object, str]] = [
    ("no", "of type str ('no')"),
    ("False", "of type str ('False')"),
    ("", "of type str ('')"),
    ("x" * 100, "of type str;"),
    (0.01, "of type float (0.01)"),
    (math.nan, "of type float (nan)"),
    (1, "of type int (1)"),
    (None, "of type NoneType"),
    ([], "of type list"),
    ([FOUND, True], "of type list"),
    ({"passed": False}, "of type dict"),
    (np.float64(0.01), "of type float64"),
    (np.array([False]), "of type ndarray"),
    (ForbiddenTools(["refund"]), "of type ForbiddenTools"),
]


@pytest.mark.parametrize(("value", "described"), NO_VERDICTS, ids=[said for _, said in NO_VERDICTS])
def test_what_is_neither_true_nor_false_is_refused(value, described):
    recorder = a_recorder()
    with pytest.raises(InputError) as raised:
        recorder.check("tone", value)
    said = str(raised.value)
    assert said.startswith(f"check 'tone': `passed` is {described}")
    assert "give True or False, a number from 0 to 1 with `threshold`, or what a Check" in said
    assert recorder.finish().assertions == ()


def test_the_truth_of_numpy_is_one_and_is_not_imported_for_it(monkeypatch):
    recorder = a_recorder()
    assert recorder.check("near", np.float64(0.5) < 1) is True
    assert recorder.check("far", np.bool_(False)) is False
    monkeypatch.delitem(sys.modules, "numpy")
    with pytest.raises(InputError, match="`passed` is of type str"):
        recorder.check("tone", "no")
    assert "numpy" not in sys.modules


@pytest.mark.parametrize(
    "value", [0.7, np.float32(0.75), Decimal("0.7"), Fraction(7, 10), 1, True, np.bool_(True)]
)
def test_with_a_threshold_a_number_passes_from_there_on(value):
    recorder = a_recorder()
    assert recorder.check("tone", value, threshold=0.7) is True
    assert recorder.check("tone", 0.69, threshold=0.7) is False
    first, second = recorder.finish().assertions
    assert (first.score, second.score) == (float(value), 0.69)


@pytest.mark.parametrize(
    ("value", "more", "said"),
    [
        ("0.9", {"threshold": 0.5}, "the value is of type str ('0.9')"),
        ([0.9], {"threshold": 0.5}, "the value is of type list"),
        (np.array([0.9]), {"threshold": 0.5}, "the value is of type ndarray"),
        (math.nan, {"threshold": 0.5}, "the value must be from 0 to 1 (got nan)"),
        (math.inf, {"threshold": 0.5}, "the value must be from 0 to 1 (got inf)"),
        (1j, {"threshold": 0.5}, "the value must be from 0 to 1 (got 1j)"),
        (85, {"threshold": 0.5}, "the value must be from 0 to 1 (got 85)"),
        (0.9, {"threshold": 0}, "the threshold is 0, which everything reaches"),
        (0.9, {"threshold": math.nan}, "the threshold must be from 0 to 1 (got nan)"),
        (0.9, {"threshold": 0.5, "score": 0.9}, "the value is the score"),
        (FOUND, {"threshold": 0.5}, "brings its own reason, score, threshold and severity"),
        ([FOUND], {"severity": "warning"}, "leave them out"),
    ],
    ids=repr,
)
def test_what_no_threshold_can_judge_is_refused(value, more, said):
    with pytest.raises(InputError) as raised:
        a_recorder().check("tone", value, **more)
    assert said in str(raised.value)


@pytest.mark.parametrize("found", [FOUND, (FOUND,), [FOUND]], ids=["one", "tuple", "list"])
def test_what_a_check_found_is_recorded_as_it_is(found):
    recorder = a_recorder(locate=lambda: ("tests/test_a.py", 3))
    assert recorder.check("tools", found) is False
    (kept,) = recorder.finish().assertions
    assert kept == FOUND.model_copy(
        update={"name": "tools: calls refund", "file": "tests/test_a.py", "line": 3}
    )


def test_a_coroutine_is_no_verdict():
    async def verdict() -> bool:
        return False

    with pytest.raises(InputError, match="call or await it first"):
        a_recorder().check("kind", verdict())


def test_a_second_reply_needs_a_second_turn():
    with a_recorder().turn("Hello") as turn:
        turn.reply("one")
        with pytest.raises(InputError, match="has a reply already"):
            turn.reply("two")


def test_nothing_is_recorded_after_the_end():
    episode = a_recorder()
    episode.finish()
    for late in (
        lambda: episode.check("late", True),
        lambda: episode.score("late", 1),
        lambda: episode.budget("late", 1),
        lambda: episode.turn("late"),
    ):
        with pytest.raises(InputError, match="has ended"):
            late()


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"budgets": {"tool_cals": 4}}, "unknown key 'tool_cals'; did you mean 'tool_calls'?"),
        ({"budgets": {"tool_calls": {"limit": -4}}}, "budgets.tool_calls.limit"),
        ({"gate": "blocking"}, "gate"),
        ({"min_pass_rate": 2}, "min_pass_rate"),
    ],
)
def test_a_bad_start_names_its_key(fields, sentence):
    with pytest.raises(InputError) as raised:
        a_recorder(**fields)
    assert sentence in str(raised.value)


@dataclass
class Order:
    number: int


def test_any_value_of_a_tool_is_written_as_json():
    loop: list[Any] = []
    loop += [loop, loop]
    value = {
        1: Order(7),
        "set": {2, 1},
        "nan": math.nan,
        "huge": 10**30,
        "surrogate": "a\ud800b",
        "object": object(),
        "loop": loop,
    }
    assert to_jsonable(value) == {
        "1": {"number": 7},
        "set": [1, 2],
        "nan": "nan",
        "huge": "1" + "0" * 30,
        "surrogate": "a\N{REPLACEMENT CHARACTER}b",
        "object": "<object object>",
        "loop": ["[[...], [...]]", "[[...], [...]]"],
    }


@given(st.text(), st.recursive(st.none() | st.floats() | st.binary() | st.text(), st.lists))
def test_whatever_is_said_the_episode_can_be_written_and_read_again(text, value):
    episode = a_recorder()
    with episode.turn(text) as turn:
        turn.tool_call(text, arguments=value, result={text: value}, error=text)
        turn.reply(text)
    episode.check(text, False, text)
    ended = episode.finish("failed", text)
    line = canonical_json(ended)
    assert line.isascii()
    assert "\n" not in line
    assert Episode.model_validate_json(line) == ended


def test_a_checks_place_is_the_callers_even_inside_this_repository():
    # The recorder's own files are below the same root here, and are not the caller.
    places = RepositoryPaths(Path(__file__).parents[3])
    episode = a_recorder(locate=places.locate_caller)
    episode.check("polite", True)
    (assertion,) = episode.finish().assertions
    assert assertion.file == "tests/unit/recording/test_recorder.py"
    assert "episode.check" in Path(__file__).read_text().splitlines()[(assertion.line or 0) - 1]


def test_conditions_of_several_runs_are_put_together():
    recorder = EpisodeRecorder("s", clock=lambda: 0.0)
    recorder.note_conditions(tools=("b", "a"), prices="1", judge=None)
    recorder.note_conditions(tools=("c",), prices="1", judge="openai:judge")
    recorder.note_conditions(prices="2")
    conditions = recorder.finish().conditions
    assert conditions.tools == ("a", "b", "c")
    assert conditions.prices == "1, 2"
    assert conditions.judge == "openai:judge"


def test_what_a_judge_took_adds_up_apart_from_the_agent_s():
    recorder = EpisodeRecorder("s", clock=lambda: 0.0)
    recorder.record_judge(TokenUsage(input=10, output=1), 0.5)
    recorder.record_judge(TokenUsage(input=5, output=2), 0.25)
    priced = recorder.snapshot().judge
    recorder.record_judge(TokenUsage(), None)
    assert (priced.calls, priced.tokens.total, priced.cost_usd) == (2, 18, 0.75)
    assert recorder.finish().judge.cost_usd is None


@pytest.mark.parametrize("mode", ["strict", "evaluation"])
def test_an_error_after_a_failed_check_is_told_with_it(mode):
    recorder = EpisodeRecorder("greeting", clock=lambda: 0.0, mode=mode)
    recorder.check("polite", False)
    ended = recorder.finish("error", "ConnectionError: refused")
    assert (ended.outcome, ended.reason) == (
        "failed",
        "failed: polite; then ConnectionError: refused",
    )
    assert [assertion.passed for assertion in ended.assertions] == [False]


def test_who_asks_is_told_what_the_episode_has_spent_each_time_that_it_spends():
    recorder, told = a_recorder(), []
    recorder.on_spent = told.append
    with recorder.turn("hi") as turn:
        turn.reply("hello", tokens={"input": 10, "output": 5}, cost_usd=0.5)
    recorder.record_judge(TokenUsage(input=100), 0.25)
    recorder.record_simulated_user(2, TokenUsage(input=1, output=1), 0.125)
    # What is not priced, or not told, is not known to be anything.
    recorder.record_simulated_user(1, None, None)
    priced = Turn(role="assistant", tokens=TokenUsage(output=7), cost_usd=1.0)
    recorder.record_run([Turn(role="user"), priced], stop_reason="completed")
    recorder.merge_episode(
        recorder.snapshot().model_copy(update={"judge": None, "simulated_user": None})
    )
    assert told == [
        SuiteUsage(0.5, 15),
        SuiteUsage(0.75, 115),
        SuiteUsage(0.875, 117),
        SuiteUsage(0.75, 115),
        SuiteUsage(1.75, 122),
        SuiteUsage(1.75, 122),
    ]


def agent_turns(number: int) -> tuple[Turn, ...]:
    return tuple(Turn(role="assistant", content=f"{n}") for n in range(number))


def test_a_run_that_needed_one_more_turn_is_over_its_budget():
    episode = a_recorder(budgets={"max_turns": 3})
    episode.record_run(agent_turns(3), stop_reason="max_turns", error="not done", needs_turn=True)
    ended = episode.finish()
    assert [(v.budget, v.observed) for v in ended.violations] == [("max_turns", 4)]
    assert ended.reason == "failed: agent finished (max_turns: not done)"
    assert ended.trajectory_summary.steps_count == 3


def test_turns_after_a_run_that_was_cut_off_are_not_counted_twice():
    episode = a_recorder(budgets={"max_turns": 9}, allowed_stops=["max_turns"])
    episode.record_run(agent_turns(3), stop_reason="max_turns", needs_turn=True)
    episode.record_run(agent_turns(2), stop_reason="completed")
    ended = episode.finish()
    assert (ended.outcome, ended.budgets.max_turns.used) == ("passed", 5)


def test_every_run_of_an_episode_has_to_finish():
    episode = a_recorder()
    episode.record_run(agent_turns(1), stop_reason="refusal", error="no")
    episode.record_run(agent_turns(1), stop_reason="completed")
    ended = episode.finish()
    assert (ended.outcome, ended.stop_reason) == ("failed", "completed")


def test_what_one_run_is_allowed_another_is_not():
    episode = a_recorder()
    episode.record_run(agent_turns(1), stop_reason="refusal", allowed_stops={"refusal"})
    assert episode.snapshot().outcome == "passed"
    assert episode.snapshot().allowed_stops == ("refusal",)
    episode.record_run(agent_turns(1), stop_reason="refusal")
    assert episode.finish().outcome == "failed"


def test_a_timeout_before_any_answer_fails_nothing_by_itself():
    episode = a_recorder(evidence="none")
    episode.record_run((Turn(role="user", content="hi"),), stop_reason="timeout")
    assert episode.finish().outcome == "passed"


@pytest.mark.parametrize(
    ("finish_reason", "reason"),
    [("stop", None), ("max_tokens", "truncated"), ("content_filter", "refusal")],
)
def test_the_finish_reason_of_a_reply_counts(finish_reason, reason):
    episode = a_recorder()
    with episode.turn("Hello") as turn:
        turn.reply("Hi", finish_reason=finish_reason)
    ended = episode.finish()
    assert ended.stop_reason == reason
    assert ended.outcome == ("failed" if reason else "passed")


def test_a_silent_turn_by_hand_is_no_unfinished_run():
    episode = a_recorder()
    with episode.turn("Hello") as turn:
        turn.reply("", finish_reason="stop")
    episode.check("is silent", True)
    assert episode.finish().outcome == "passed"
