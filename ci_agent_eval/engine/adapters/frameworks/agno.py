"""Agents and teams of agno."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    FrameworkAgent,
    FrameworkAnswer,
)
from ci_agent_eval.engine.infrastructure_errors import ModelError


class AgnoAgent(FrameworkAgent):
    """An agent or team; with a database it keeps the conversation by a session id."""

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent on the message, after the earlier ones if it does not keep them."""
        session = conversation.state or uuid4().hex
        given: Any = prompt
        if self.agent.db is None and conversation:
            given = [*conversation, {"role": "user", "content": prompt}]
        result = await self.agent.arun(given, session_id=session)
        if getattr(result.status, "value", result.status) == "ERROR":
            raise ModelError(f"{self.label} failed: {result.content}")
        messages = [message for message in result.messages or () if message.role != "system"]
        return FrameworkAnswer(result.content, state=session, messages=messages)
