"""What a simulation records in the episode of its test."""

from __future__ import annotations

import pytest

from ci_agent_eval import SimulatedUser, SimulationResult, run_simulation
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    activate_episode,
    deactivate_episode,
)
from tests.unit.authoring.simulation.recorders import build_recorder


def echo(message, *, thread_id):
    return f"you said {message}"


def user(*responses):
    return SimulatedUser("a customer", fixed_responses=responses or ["hi"])


def test_each_exchange_is_a_turn_of_the_episode(recorder):
    run_simulation(echo, user("a", "b"), max_turns=2, tags=["smoke"])
    episode = recorder.finish()
    turns = [(t.role, t.content, t.latency_ms) for t in episode.trajectory.turns]
    assert turns == [
        ("user", "a", None),
        ("assistant", "you said a", 100),
        ("user", "b", None),
        ("assistant", "you said b", 100),
    ]
    assert episode.metadata["simulations"] == [
        {
            "thread_id": episode.thread_id,
            "stop_reason": "max_turns",
            "turns": 2,
            "tags": ["smoke"],
        }
    ]


def test_a_thread_follows_from_the_episode():
    def threads(*args, **fields):
        recorder = build_recorder(*args, **fields)
        activate_episode(RunningEpisode("strict", recorder))
        try:
            runs = [run_simulation(echo, user(), max_turns=1).thread_id for _ in range(2)]
        finally:
            deactivate_episode()
        assert recorder.thread_id == runs[0]
        return runs

    first = threads()
    assert threads() == first
    others = [threads("other"), threads(iteration=2), threads(attempt=2)]
    every = {thread for runs in (first, *others) for thread in runs}
    assert len(every) == 8


def test_a_thread_of_the_test_s_own_stays(recorder):
    recorder.thread_id = "mine"
    assert run_simulation(echo, user(), max_turns=1).thread_id == "mine"


def test_what_the_app_raises_leaves_the_turns_so_far(recorder):
    def app(message):
        if message == "b":
            raise ConnectionError("no database")
        return "ok"

    with pytest.raises(ConnectionError):
        run_simulation(app, user("a", "b"))
    *turns, broke = recorder.turns
    assert [t.content for t in turns] == ["a", "ok", "b"]
    assert (broke.role, broke.content) == (
        "system",
        "the agent raised ConnectionError: no database",
    )
    (noted,) = recorder.metadata["simulations"]
    assert (noted["error"], noted["turns"]) == ("ConnectionError", 1)
    assert "stop_reason" not in noted


def test_metadata_of_the_test_s_own_is_left_alone(recorder):
    recorder.metadata["simulations"] = "mine"
    assert isinstance(run_simulation(echo, user(), max_turns=1), SimulationResult)
    assert recorder.metadata["simulations"] == "mine"
