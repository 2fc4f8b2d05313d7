"""A first agent episode: replace `answer` by your agent."""

import pytest


def answer(message):
    """Stand in for your agent: a script, until you call the real one here."""
    return f"You said: {message}"


@pytest.mark.episode(scenario_id="greets_back", budgets={"max_turns": 1, "latency_ms": 2000})
def test_greets_back(episode):
    with episode.turn("hello") as turn:
        turn.reply(answer("hello"), source="scripted")
    assert "hello" in episode.turns[-1].content
