"""Agents and agent workflows of LlamaIndex."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    FrameworkAgent,
    FrameworkAnswer,
)

_KEPT_VALUES = ("state", "current_agent_name")
"""Values of a finished run's context that the next run continues with, besides the memory."""


class WorkflowAgent(FrameworkAgent):
    """A `FunctionAgent`, `ReActAgent`, `CodeActAgent` or `AgentWorkflow`."""

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the agent in a new context, with the memory and values of the conversation."""
        context = import_module("llama_index.core.workflow").Context(self.agent)
        known: dict[str, Any] = dict(conversation.state or {})
        memory = known.pop("memory", None)
        for name, value in known.items():
            await context.store.set(name, value)
        run = self.agent.run(user_msg=prompt, memory=memory, ctx=context)
        result = await run
        typed = getattr(result, "structured_response", None)
        state = {"memory": await run.ctx.store.get("memory")}
        for name in _KEPT_VALUES:
            if (value := await run.ctx.store.get(name, default=None)) is not None:
                state[name] = value
        return FrameworkAnswer(str(result) if typed is None else typed, state=state)
