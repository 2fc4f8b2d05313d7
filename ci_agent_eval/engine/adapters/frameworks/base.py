"""The parts that the adapters of all frameworks share."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import isawaitable
from typing import Any
from weakref import WeakKeyDictionary

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.stops import StopReason
from ci_agent_eval.engine.adapters.protocol import AgentTask
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import Reply


@dataclass(frozen=True, eq=False)
class Conversation(Sequence[Any]):
    """The messages of a conversation, with the state from which its framework continues it."""

    messages: Sequence[Any] = ()
    state: Any = None
    """None: a new conversation."""

    def __getitem__(self, index: Any) -> Any:
        return self.messages[index]

    def __len__(self) -> int:
        return len(self.messages)


@dataclass(frozen=True, slots=True)
class FrameworkAnswer:
    """The end of an agent's run."""

    output: Any
    """The final answer: a text or a typed value."""
    state: Any
    """The state that continues the conversation."""
    messages: Sequence[Any] | None = None
    """The conversation in the framework's form; None: texts of the user and the agent."""
    stop_reason: StopReason = "completed"
    error: str | None = None


@dataclass(frozen=True)
class FrameworkAgent(ABC):
    """An agent of a framework, which runs unchanged."""

    agent: Any
    name: str | None = None

    @property
    def label(self) -> str:
        """The name of the adapter, of the agent, or of its class."""
        own = getattr(self.agent, "name", None)
        return self.name or (own if isinstance(own, str) and own else type(self.agent).__name__)

    @property
    def model(self) -> str | None:
        """None: the model traffic names the model."""
        return None

    async def answer(self, work: AgentTask) -> None:
        """Run the agent on the prompt; the model traffic has its turns.

        After a run without an answer, the conversation continues from before it.
        """
        conversation = work.messages = self._get_conversation(work.history)
        answer = await self.ask(work.prompt, conversation)
        text = render_output(answer.output)
        is_typed = not isinstance(answer.output, str | None)
        work.set_reply(
            Reply(
                text,
                output=answer.output if is_typed else None,
                stop_reason=answer.stop_reason,
                error=answer.error,
            )
        )
        texts = [{"role": "user", "content": work.prompt}, {"role": "assistant", "content": text}]
        messages = (*work.history, *texts) if answer.messages is None else answer.messages
        work.messages = Conversation(messages, answer.state)

    @abstractmethod
    async def ask(self, prompt: str, conversation: Conversation) -> FrameworkAnswer:
        """Send a prompt; `conversation.state` is None for a new conversation."""

    def _get_conversation(self, history: Sequence[Any]) -> Conversation:
        if isinstance(history, Conversation):
            return history
        if history:
            raise InputError(
                f"agent {self.label!r}: `messages` must be those of an earlier result of this "
                f"agent ({type(self.agent).__name__}), which has the state to continue from"
            )
        return Conversation()


def render_output(value: Any) -> str:
    """Return an output as text: a typed one as JSON."""
    if isinstance(value, str | None):
        return value or ""
    return json.dumps(to_jsonable(value), ensure_ascii=False)


class ExclusiveAgents:
    """Agents that keep the conversation themselves, and so can run only one at a time."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[Any, tuple[object, asyncio.Lock]] = WeakKeyDictionary()
        self._initial: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def lock(self, agent: object) -> asyncio.Lock:
        """Return the agent's lock on the running event loop."""
        loop = asyncio.get_running_loop()
        known = self._locks.get(agent)
        if known is None or known[0] is not loop:
            known = self._locks[agent] = (loop, asyncio.Lock())
        return known[1]

    async def get_initial_state(self, agent: object, save: Callable[[], Any]) -> Any:
        """Return the agent's state before its first conversation; `save` returns its state."""
        if agent not in self._initial:
            state = save()
            self._initial[agent] = await state if isawaitable(state) else state
        return self._initial[agent]
