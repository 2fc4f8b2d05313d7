"""Agents of the OpenAI Agents SDK."""

from __future__ import annotations

from importlib import import_module

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    FrameworkAgent,
    FrameworkAnswer,
)


class OpenAIAgent(FrameworkAgent):
    """An `agents.Agent`; after a handoff the next message goes to the agent that took over."""

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the current agent with `Runner.run`."""
        current = conversation.state or self.agent
        items = [*conversation, {"role": "user", "content": prompt}]
        result = await import_module("agents").Runner.run(current, items)
        return FrameworkAnswer(
            result.final_output, state=result.last_agent, messages=result.to_input_list()
        )
