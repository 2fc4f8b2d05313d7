"""Agents of Strands."""

from __future__ import annotations

from functools import partial

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    ExclusiveAgents,
    FrameworkAgent,
    FrameworkAnswer,
)

_AGENTS = ExclusiveAgents()


class StrandsAgent(FrameworkAgent):
    """A `strands.Agent`.

    It keeps the conversation itself and runs one at a time: a run restores the state of its
    conversation, and waits for the run of another one.
    """

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent from the conversation's snapshot."""
        agent = self.agent
        save = partial(agent.take_snapshot, preset="session")
        async with _AGENTS.lock(agent):
            initial = await _AGENTS.get_initial_state(agent, save)
            agent.load_snapshot(conversation.state or initial)
            result = await agent.invoke_async(prompt)
            output = result.structured_output
            return FrameworkAnswer(
                str(result).strip() if output is None else output,
                state=save(),
                messages=tuple(agent.messages),
            )
