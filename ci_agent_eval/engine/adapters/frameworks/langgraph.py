"""Compiled graphs of LangGraph, and agents of LangChain, which are such graphs."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from ci_agent_eval.engine.adapters.frameworks.base import (
    Conversation,
    FrameworkAgent,
    FrameworkAnswer,
)
from ci_agent_eval.errors import InputError


class GraphAgent(FrameworkAgent):
    """A compiled graph with `messages`; with a checkpointer it keeps them by a thread id."""

    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Run the graph on the new message, with the earlier ones if it does not keep them."""
        if "messages" not in self.agent.channels:
            raise InputError(
                f"graph {self.label!r} has no `messages` in its state; give a function that calls "
                "it and returns its answer"
            )
        thread = conversation.state or uuid4().hex
        is_kept = bool(self.agent.checkpointer)
        known = () if is_kept else conversation
        state = await self.agent.ainvoke(
            {"messages": [*known, {"role": "user", "content": prompt}]},
            {"configurable": {"thread_id": thread}},
        )
        messages = state["messages"]
        output = state.get("structured_response")
        return FrameworkAnswer(
            _get_text(messages[-1]) if output is None else output, state=thread, messages=messages
        )


def _get_text(message: Any) -> str:
    """Return the text of a message; its `text` was a method in older versions of LangChain."""
    text = message.text
    return str(text() if callable(text) and not isinstance(text, str) else text)
