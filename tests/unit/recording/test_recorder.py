"""The recorder: what a test says becomes an Episode, and nothing bad gets in."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Episode, SideUsage
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.trajectory import TokenUsage, Turn
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode, list_failure_reasons
from tests.tables import each_row
from tests.unit.recording.rig import a_recorder


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


@each_row(("sentence", "call"), BAD, ids=[sentence for sentence, _ in BAD])
def test_bad_values_raise_where_they_are_said(sentence, call):
    with pytest.raises(InputError) as raised:
        call(a_recorder())
    assert sentence in str(raised.value)


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


@each_row(
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


def test_conditions_of_several_runs_are_put_together():
    recorder = EpisodeRecorder(build_initial_episode("s"), clock=lambda: 0.0)
    recorder.note_conditions(tools=("b", "a"), prices="1", judge=None)
    recorder.note_conditions(tools=("c",), prices="1", judge="openai:judge")
    recorder.note_conditions(prices="2")
    conditions = recorder.finish().conditions
    assert conditions.tools == ("a", "b", "c")
    assert conditions.prices == "1, 2"
    assert conditions.judge == "openai:judge"


def test_what_a_judge_took_adds_up_apart_from_the_agent_s():
    recorder = EpisodeRecorder(build_initial_episode("s"), clock=lambda: 0.0)
    recorder.record_judge(SideUsage(calls=1, tokens=TokenUsage(input=10, output=1), cost_usd=0.5))
    recorder.record_judge(SideUsage(calls=1, tokens=TokenUsage(input=5, output=2), cost_usd=0.25))
    priced = recorder.snapshot().judge
    recorder.record_judge(SideUsage(calls=1, tokens=TokenUsage(), cost_usd=None))
    assert (priced.calls, priced.tokens.total, priced.cost_usd) == (2, 18, 0.75)
    assert recorder.finish().judge.cost_usd is None


def test_who_asks_is_told_what_the_episode_has_spent_each_time_that_it_spends():
    recorder, told = a_recorder(), []
    recorder.on_spent = told.append
    with recorder.turn("hi") as turn:
        turn.reply("hello", tokens={"input": 10, "output": 5}, cost_usd=0.5)
    recorder.record_judge(SideUsage(calls=1, tokens=TokenUsage(input=100), cost_usd=0.25))
    recorder.record_simulated_user(
        SideUsage(calls=2, tokens=TokenUsage(input=1, output=1), cost_usd=0.125)
    )
    # What is not priced, or not told, is not known to be anything.
    recorder.record_simulated_user(SideUsage(calls=1, tokens=None))
    priced = Turn(role="assistant", tokens=TokenUsage(output=7), cost_usd=1.0)
    recorder.record_run([Turn(role="user"), priced], stop_reason="completed")
    recorder.merge_episode(
        recorder.snapshot().model_copy(update={"judge": None, "simulated_user": None})
    )
    assert told == [
        Usage(turns=1, tokens=15, cost_usd=0.5),
        Usage(turns=1, tokens=115, cost_usd=0.75),
        Usage(turns=1, tokens=117, cost_usd=0.875),
        Usage(turns=1, tokens=115, cost_usd=0.75),
        Usage(turns=2, tokens=122, cost_usd=1.75),
        Usage(turns=2, tokens=122, cost_usd=1.75),
    ]
