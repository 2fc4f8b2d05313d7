"""Conversations of the desk; how kind its replies are is judged afterwards, by judges.py."""

import pytest
from desk import REPLIES, reply


@pytest.mark.parametrize(
    "scenario",
    [
        pytest.param(name, marks=pytest.mark.episode(scenario_id=name, iterations=2))
        for name in sorted(REPLIES)
    ],
)
def test_desk(episode, scenario):
    with episode.turn(REPLIES[scenario][0]) as turn:
        text = reply(scenario, episode.iteration)
        turn.reply(text)
    episode.check("replies in at most 30 words", len(text.split()) <= 30)
