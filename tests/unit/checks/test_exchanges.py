from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.checks.exchanges import (
    get_agent_texts,
    get_replies,
    get_tool_calls,
    split_exchanges,
)
from ci_agent_eval.contract.episode import Episode
from tests.builders import talk, tool_call, turn

TURNS = st.lists(
    st.sampled_from(["u1", "u2"])
    | st.builds(
        lambda role, content: {"role": role, "content": content},
        st.sampled_from(["assistant", "system", "tool"]),
        st.sampled_from(["", "a", "b"]),
    ),
    max_size=8,
)


def parts(*turns):
    return [
        (e.user_texts, tuple(t.content for t in e.turns)) for e in split_exchanges(talk(*turns))
    ]


def test_an_exchange_is_what_the_user_says_and_what_follows():
    assert parts("a", turn("b"), turn("c"), "d", turn("e")) == [
        (("a",), ("b", "c")),
        (("d",), ("e",)),
    ]


def test_an_agent_may_speak_first_and_a_user_last():
    assert parts(turn("hi"), "a") == [((), ("hi",)), (("a",), ())]


def test_replies_calls_and_texts():
    looks = turn("Let me look.", tool_calls=[tool_call("find")])
    episode = talk("a", looks, turn("Found."), turn(" "), "b", turn("", tool_calls=[tool_call()]))
    assert get_replies(episode) == ("Found.", "")
    assert [call.name for call in get_tool_calls(episode)] == ["find", "lookup_order"]
    assert get_agent_texts(episode) == ("Let me look.", "Found.", " ", "")


def test_an_episode_without_a_trajectory_has_none():
    empty = Episode(scenario_id="x", outcome="passed")
    assert (
        split_exchanges(empty),
        get_replies(empty),
        get_tool_calls(empty),
        get_agent_texts(empty),
    ) == ((),) * 4


@given(TURNS)
def test_no_turn_is_lost(turns):
    found = split_exchanges(talk(*turns))
    assert [t for e in found for t in e.user_texts] == [t for t in turns if isinstance(t, str)]
    agent = [t["content"] for t in turns if isinstance(t, dict) and t["role"] == "assistant"]
    assert [t.content for e in found for t in e.turns] == agent
