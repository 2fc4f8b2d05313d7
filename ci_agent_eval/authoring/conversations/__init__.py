"""Conversations: multi-turn agent tests with plain assertions."""

from ci_agent_eval.authoring.conversations.decorator import conversation
from ci_agent_eval.authoring.conversations.messages import ConversationState, Message
from ci_agent_eval.authoring.conversations.wrapped import AgentUnderTest, AsyncAgentUnderTest

__all__ = [
    "AgentUnderTest",
    "AsyncAgentUnderTest",
    "ConversationState",
    "Message",
    "conversation",
]
