"""Agents and teams of AutoGen."""

from __future__ import annotations

import copy

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    ExclusiveAgents,
    FrameworkAgent,
    FrameworkAnswer,
)

_AGENTS = ExclusiveAgents()


class ChatAgent(FrameworkAgent):
    """A chat agent or team.

    It keeps the conversation itself and runs one at a time: a run restores the state of its
    conversation, and waits for the run of another one.
    """

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent from the conversation's saved state."""
        agent = self.agent
        async with _AGENTS.lock(agent):
            initial = await _AGENTS.get_initial_state(agent, agent.save_state)
            await agent.load_state(copy.deepcopy(conversation.state or initial))
            result = await agent.run(task=prompt)
            last = result.messages[-1]
            content = last.content if hasattr(last.content, "model_dump") else last.to_text()
            return FrameworkAnswer(content, state=await agent.save_state())
