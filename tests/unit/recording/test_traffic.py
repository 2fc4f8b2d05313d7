"""The model calls of an episode beside its recorded turns, and the runs of several agents."""

from __future__ import annotations

import itertools

from ci_agent_eval.contract.trajectory import TokenUsage, TrajectoryAgent, Turn
from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode
from ci_agent_eval.recording.recorded_turns import add_agents
from ci_agent_eval.recording.traffic import EpisodeTraffic
from tests.traffic_calls import Traffic, answer, result, said, tool, user


def start():
    recorder = EpisodeRecorder(build_initial_episode("s"), clock=itertools.count().__next__)
    traffic = Traffic()
    recorder.recorded_turns.traffic = EpisodeTraffic(traffic.recorder)
    return recorder, traffic


def test_turns_are_in_the_order_of_calls_and_recorded_parts():
    recorder, traffic = start()
    traffic.ask(user("one"), gives=answer("first"))
    with recorder.turn("two") as turn:
        traffic.ask(user("two"), gives=answer("second"))
        assert len(recorder.turns) == 2  # without the open turn
        turn.reply("2nd")
    recorder.record_run([Turn(role="assistant", content="third")], stop_reason="completed")
    traffic.ask(user("four"), gives=answer("fourth"))
    texts = ["one", "first", "two", "2nd", "third", "four", "fourth"]
    assert [turn.content for turn in recorder.turns] == texts
    assert [turn.content for turn in recorder.finish().trajectory.turns] == texts


def test_a_result_that_a_later_turn_shows_belongs_to_the_earlier_one():
    recorder, traffic = start()
    call = tool("lookup", "c1")
    with recorder.turn("go"):
        traffic.ask(user("go"), gives=answer("", call))
    assert recorder.tool_calls[0].result_unseen
    with recorder.turn("on"):
        traffic.ask(
            user("go"), said("", call), result("Rome", "c1"), user("on"), gives=answer("ok")
        )
    assert recorder.tool_calls[0].result == "Rome"
    assert [turn.content for turn in recorder.turns] == ["go", "", "on", "ok"]


def test_all_calls_of_an_open_turn_count_as_one_turn():
    recorder, traffic = start()
    with recorder.turn("go"):
        traffic.ask(user("go"), gives=answer("a"))
        traffic.ask(user("go again"), gives=answer("b"))
        used, open_calls = recorder.recorded_turns.traffic.measure_usage(
            recorder.recorded_turns.parts, with_cost=True
        )
        assert (used.turns, used.tokens, open_calls) == (1, 30, 0)
    used, _ = recorder.recorded_turns.traffic.measure_usage(
        recorder.recorded_turns.parts, with_cost=True
    )
    assert used.turns == 2


def test_the_spending_has_the_calls_of_an_open_turn():
    recorder, traffic = start()
    told = []
    recorder.on_spent = told.append
    traffic.ask(user("first"), gives=answer("a"))
    with recorder.turn("go") as turn:
        traffic.ask(user("go"), gives=answer("b"))
        recorder.report_spending()
        turn.reply("B", tokens={"input": 1, "output": 1})
    assert [spent.tokens for spent in told] == [30, 17]


def test_a_turn_whose_calls_all_failed_has_an_empty_answer():
    recorder, traffic = start()
    with recorder.turn("go"):
        traffic.fail(user("go"), status=500)
    assert [(turn.role, turn.content) for turn in recorder.turns] == [
        ("user", "go"),
        ("assistant", ""),
    ]


def test_unknown_tokens_of_one_answer_make_the_sum_unknown():
    recorder, traffic = start()
    with recorder.turn("go") as turn:
        traffic.ask(user("go"), gives=answer("a", tokens=TokenUsage(input=1)))
        traffic.ask(user("go on"), gives=answer("b", tokens=None))
        turn.reply("AB")
    assert recorder.turns[1].tokens is None


def test_an_explicit_reply_counts_with_its_own_figures():
    recorder, traffic = start()
    with recorder.turn("go") as turn:
        traffic.ask(user("go"), gives=answer("a", tool("lookup")))
        turn.reply("A", tokens={"input": 1, "output": 1})
    used, _ = recorder.recorded_turns.traffic.measure_usage(
        recorder.recorded_turns.parts, with_cost=True
    )
    assert (used.turns, used.tool_calls, used.tokens) == (1, 1, 2)


def test_the_model_of_the_first_answer_is_the_episodes_unless_it_has_one():
    recorder, traffic = start()
    traffic.ask(user("go"), gives=answer("a"), model="gpt-5")
    assert recorder.finish().model == "gpt-5"
    recorder, traffic = start()
    recorder.model = "mine"
    traffic.ask(user("go"), gives=answer("a"), model="gpt-5")
    assert recorder.finish().model == "mine"


MAIN = TrajectoryAgent(id="1")
HELPER = TrajectoryAgent(id="1.1", name="help", parent="1", relation="nested")
OTHER = TrajectoryAgent(id="1.1", name="other", parent="1", relation="handoff")


def test_the_same_agents_of_two_runs_are_one_tree_and_others_get_new_places():
    turns = [Turn(role="assistant", agent="1.1")]
    assert add_agents((MAIN, HELPER), (MAIN, HELPER), turns) == ((MAIN, HELPER), turns)
    agents, moved = add_agents((MAIN, HELPER), (MAIN, OTHER), turns)
    assert [(agent.id, agent.parent) for agent in agents] == [
        ("1", None),
        ("1.1", "1"),
        ("2", None),
        ("2.1", "2"),
    ]
    assert [turn.agent for turn in moved] == ["2.1"]
