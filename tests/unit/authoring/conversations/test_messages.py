"""Messages read as their text, and a conversation shows the turns since it began."""

from __future__ import annotations

from ci_agent_eval.authoring.conversations import ConversationState, Message
from ci_agent_eval.contract.trajectory import ToolCall, Turn

CALL = ToolCall(name="draw", arguments={"box": "A"})
TURNS = (
    Turn(role="user", content="Create A"),
    Turn(role="assistant", content="Done", tool_calls=(CALL,), latency_ms=12),
    Turn(role="user", content="Add B"),
    Turn(role="system", content="the agent raised ConnectionError", latency_ms=3),
)


def test_a_message_equals_its_text_and_another_of_the_same_kind():
    message = Message("assistant", "Done", (CALL,))
    assert message == "Done"
    assert message != "Gone"
    assert message == Message("assistant", "Done", (CALL,))
    assert message != Message("user", "Done", (CALL,))
    assert message != 4
    assert hash(message) == hash("Done")
    assert "on" in message
    assert str(message) == message.text == message.content


def test_a_conversation_tells_both_sides_apart():
    said = ConversationState(lambda: TURNS)
    assert [m.text for m in said.messages] == [turn.content for turn in TURNS]
    assert [m.text for m in said.user_messages] == ["Create A", "Add B"]
    assert [m.text for m in said.agent_messages] == ["Done"]
    assert said.tool_calls == (CALL,)
    assert said.last == "Done"
    assert said.last.latency_ms == 12
