"""What a simulation records in the episode of its test."""

from __future__ import annotations

from ci_agent_eval import SimulatedUser, SimulationResult, run_simulation


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


def test_metadata_of_the_test_s_own_is_left_alone(recorder):
    recorder.metadata["simulations"] = "mine"
    assert isinstance(run_simulation(echo, user(), max_turns=1), SimulationResult)
    assert recorder.metadata["simulations"] == "mine"
