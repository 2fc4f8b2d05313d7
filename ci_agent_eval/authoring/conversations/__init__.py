"""Conversations: multi-turn agent tests with plain assertions."""

from ci_agent_eval.authoring.conversations.agent_under_test import (
    AgentUnderTest,
    AsyncAgentUnderTest,
)
from ci_agent_eval.authoring.conversations.decorator import conversation
from ci_agent_eval.authoring.conversations.messages import ConversationState, Message

__all__ = [
    "AgentUnderTest",
    "AsyncAgentUnderTest",
    "ConversationState",
    "Message",
    "conversation",
]
