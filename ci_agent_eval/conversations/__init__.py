"""Conversations: multi-turn agent tests with plain assertions."""

from ci_agent_eval.conversations.decorator import conversation
from ci_agent_eval.conversations.messages import ConversationState, Message
from ci_agent_eval.conversations.wrapped import AgentUnderTest, AsyncAgentUnderTest

__all__ = [
    "AgentUnderTest",
    "AsyncAgentUnderTest",
    "ConversationState",
    "Message",
    "conversation",
]
