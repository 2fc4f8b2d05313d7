"""Agents of smolagents."""

from __future__ import annotations

import copy
from typing import Any

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    FrameworkAgent,
    FrameworkAnswer,
)
from ci_agent_eval.engine.adapters.function import call_in_thread


class StepAgent(FrameworkAgent):
    """A `ToolCallingAgent` or `CodeAgent`.

    It keeps the conversation itself, so each conversation has a copy with a separate memory.
    """

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the conversation's copy in a thread."""
        agent = conversation.state or _copy_agent(self.agent)

        def run() -> Any:
            return agent.run(prompt, reset=False, return_full_result=True)

        result = await call_in_thread(run)
        is_cut_off = result.state == "max_steps_error"
        return FrameworkAnswer(
            result.output,
            state=agent,
            stop_reason="max_turns" if is_cut_off else "completed",
            error=f"it was not done after {agent.max_steps} steps" if is_cut_off else None,
        )


def _copy_agent(agent: Any) -> Any:
    """Copy an agent without its conversation; it shares model and tools with the original."""
    clone = copy.copy(agent)
    clone.memory = type(agent.memory)(agent.system_prompt)
    clone.state = dict(agent.state)
    clone.monitor = type(agent.monitor)(agent.model, agent.logger)
    clone._setup_step_callbacks(None)  # noqa: SLF001 - it registers the monitor of the copy
    for kind, callbacks in agent.step_callbacks._callbacks.items():  # noqa: SLF001 - as above
        for callback in callbacks:
            if getattr(callback, "__self__", None) is not agent.monitor:
                clone.step_callbacks.register(kind, callback)
    clone.managed_agents = {
        name: _copy_agent(managed) for name, managed in agent.managed_agents.items()
    }
    if hasattr(agent, "create_python_executor"):
        clone.python_executor = clone.create_python_executor()
    return clone
