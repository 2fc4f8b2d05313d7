"""The playback of an episode: answers in order, whatever is asked."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.playback import Play
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.playback import MAX_EXTRA, EpisodePlayback
from tests.builders import talk, tool_call, turn


def playback(*turns, **fields):
    return EpisodePlayback(Play(trajectory=talk(*turns).trajectory, **fields))


def test_answers_are_given_in_order_with_the_message_of_this_run():
    played = playback("one", turn("", tool_calls=[tool_call()]), turn("1"), "two", turn("2"))
    first, second = played.take_answer("uno"), played.take_answer("due")
    assert [(t.role, t.content) for t in first.turns] == [
        ("user", "uno"), ("assistant", ""), ("assistant", "1"),
    ]  # fmt: skip
    assert (first.text, second.text) == ("1", "2")
    record = played.build_record()
    assert record.is_exact
    assert record.answers == 2


def test_the_stop_reason_is_that_of_the_last_answer():
    played = playback("one", turn("1"), "two", turn("2"), stop_reason="max_turns")
    assert [played.take_answer("x").stop_reason for _ in "ab"] == ["completed", "max_turns"]


def test_after_the_last_answer_its_text_is_repeated_without_calls():
    played = playback("one", turn("1", tool_calls=[tool_call()]))
    played.take_answer("x")
    again = played.take_answer("and?")
    assert [(t.content, len(t.tool_calls)) for t in again.turns] == [("and?", 0), ("1", 0)]
    assert (played.build_record().extra, played.build_record().is_exact) == (1, False)


def test_a_test_that_never_stops_is_stopped():
    played = playback("one", turn("1"))
    for _ in range(MAX_EXTRA + 1):
        played.take_answer("x")
    with pytest.raises(InputError, match="no answer is recorded"):
        played.take_answer("x")


def test_a_recorded_exception_cannot_be_played():
    with pytest.raises(InputError, match="no answer is recorded"):
        playback("one", {"role": "system", "content": "the agent raised X"}).take_answer("one")
    with pytest.raises(InputError, match="no answer is recorded"):
        playback().take_answer("one")


def test_the_prompt_of_a_nested_agent_is_part_of_the_answer():
    nested = {"role": "user", "content": "sub-task", "agent": "1.1"}
    played = playback("one", turn("", agent="1", tool_calls=[tool_call()]), nested, turn("1"))
    assert [t.content for t in played.take_answer("one").turns] == ["one", "", "sub-task", "1"]


def test_the_next_message_of_the_user_is_the_recorded_one():
    played = playback("one", turn("1"), "two", turn("2"))
    said = []
    while (message := played.get_next_message()) is not None:
        said.append(message)
        played.take_answer(message)
    assert said == ["one", "two"]


def test_an_unasked_answer_is_unused():
    played = playback("one", turn("1"), "two", turn("2"))
    assert (played.build_record().unused, played.build_record().is_exact) == (2, False)
