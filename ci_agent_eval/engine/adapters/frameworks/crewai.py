"""Agents and crews of CrewAI."""

from __future__ import annotations

import re
from typing import Any

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    FrameworkAgent,
    FrameworkAnswer,
)
from ci_agent_eval.errors import InputError

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


class CrewAgent(FrameworkAgent):
    """A crew, whose tasks have one placeholder for the message, or a single agent.

    Both keep the state of a run, so each run has a copy.
    """

    @property
    def label(self) -> str:
        """The name of the adapter or of the crew, or the agent's role."""
        own = getattr(self.agent, "role", None) or getattr(self.agent, "name", None)
        return self.name or str(own or type(self.agent).__name__)

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Kick a copy off: a crew with the message as its input, an agent with all messages."""
        is_crew = hasattr(self.agent, "tasks")
        if is_crew and conversation:
            raise InputError(
                f"crew {self.label!r} keeps no conversation; use its agent for several messages"
            )
        messages = [*conversation, {"role": "user", "content": prompt}]
        given: dict[str, Any] = {"messages": messages}
        if is_crew:
            given = {"inputs": {self._find_placeholder(): prompt}}
        result = await self.agent.copy().kickoff_async(**given)
        answer = [{"role": "assistant", "content": result.raw}]
        return FrameworkAnswer(
            result.pydantic or result.raw, state=True, messages=[*messages, *answer]
        )

    def _find_placeholder(self) -> str:
        texts = [text for task in self.agent.tasks for text in _list_texts(task)]
        texts += [text for agent in self.agent.agents for text in _list_texts(agent)]
        names: list[str] = sorted({name for text in texts for name in _PLACEHOLDER.findall(text)})
        if len(names) != 1:
            found = ", ".join(names) or "none"
            raise InputError(
                f"crew {self.label!r}: the message needs exactly one placeholder in its tasks, "
                f"there are: {found}; give a function that calls `kickoff` with its inputs"
            )
        return names[0]


def _list_texts(part: Any) -> list[str]:
    fields = ("description", "expected_output", "role", "goal", "backstory")
    return [str(getattr(part, field, None) or "") for field in fields]
