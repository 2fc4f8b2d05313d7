"""The agent under test: actions, the conversation, and the agent's own attributes."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Sequence
from typing import Any, Generic, NoReturn, TypeVar

from ci_agent_eval.authoring.conversations.messages import ConversationState, Message
from ci_agent_eval.authoring.conversations.runner import ConversationRunner
from ci_agent_eval.authoring.simulation.awaiting import RunAwaitable, run_sync
from ci_agent_eval.authoring.simulation.message_files import MessageFile

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent

AgentT_co = TypeVar("AgentT_co", covariant=True)
"""The author's own agent."""


class _AgentView(Generic[AgentT_co]):
    """Read access to the agent's attributes."""

    __slots__ = ("_runner",)

    def __init__(self, runner: ConversationRunner) -> None:
        object.__setattr__(self, "_runner", runner)

    _runner: ConversationRunner

    @property
    def conversation(self) -> ConversationState:
        """The conversation since the beginning or the last reset."""
        return self._runner.state

    @property
    def wrapped(self) -> AgentT_co:
        """The agent itself, as returned by the factory, with its own type."""
        agent: AgentT_co = self._runner.agent
        return agent

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        agent = self._runner.observed_agent
        try:
            return getattr(agent, name)
        except AttributeError as error:
            if error.obj is not agent or error.name != name:
                raise  # the attribute exists, and its code failed
            raise AttributeError(
                f"the agent ({type(agent).__name__}) has no {name!r} to observe; "
                "give it an attribute or property of that name"
            ) from None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"a test observes the agent; to set {name!r} on it, write `agent.wrapped.{name} = ...`"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._runner.agent)})

    def __repr__(self) -> str:
        return f"<agent under test: {type(self._runner.agent).__name__}>"


class AgentUnderTest(_AgentView[AgentT_co]):
    """The agent in a sync test: `agent: AgentUnderTest[MyAgent]`.

    Every attribute of the agent is available too; `wrapped` is the agent with its type.
    """

    __slots__ = ("_run",)
    _run: RunAwaitable

    def __init__(self, runner: ConversationRunner, run: RunAwaitable) -> None:
        super().__init__(runner)
        object.__setattr__(self, "_run", run)

    def send(self, message: str, *, files: Sequence[MessageFile] = ()) -> Message:
        """Send a message and return the reply; both are recorded as a turn.

        Exceptions of the agent are raised here; the turn so far is kept.
        """
        return run_sync(self._runner.send(message, files), self._run)

    def reset(self) -> None:
        """Reset the agent, or create a new one if it has no `reset`, and start a conversation.

        The turns recorded so far are kept, and their cost counts.
        """
        run_sync(self._runner.reset(), self._run)


class AsyncAgentUnderTest(_AgentView[AgentT_co]):
    """The agent in an async test: `agent: AsyncAgentUnderTest[MyAgent]`.

    Every attribute of the agent is available too; `wrapped` is the agent with its type.
    """

    __slots__ = ()

    def send(
        self, message: str, *, files: Sequence[MessageFile] = ()
    ) -> Coroutine[Any, Any, Message]:
        """Send a message and return the reply, once awaited; both are recorded as a turn.

        Exceptions of the agent are raised here; the turn so far is kept. A sync `respond` is
        called on the event loop, in the thread that created the agent.
        """
        return self._runner.build_sender(message, files)

    def reset(self) -> Awaitable[None]:
        """Reset the agent, or create a new one if it has no `reset`, and start a conversation.

        A sync reset runs immediately; an async one when this is awaited or the next message
        is sent. The turns recorded so far are kept.
        """
        return self._runner.start_reset()
