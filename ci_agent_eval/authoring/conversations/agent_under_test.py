"""The agent as a test holds it: actions, the conversation, and all it has to observe."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine
from typing import Any, NoReturn

from ci_agent_eval.authoring.conversations.messages import ConversationState, Message
from ci_agent_eval.authoring.conversations.runner import ConversationRunner
from ci_agent_eval.authoring.simulation.episode_access import run_awaitable
from ci_agent_eval.authoring.simulation.steps import RunAwaitable, run_steps

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class _AgentView:
    """Gives what the agent itself exposes, by its own names."""

    __slots__ = ("_core",)

    def __init__(self, core: ConversationRunner) -> None:
        object.__setattr__(self, "_core", core)

    _core: ConversationRunner

    @property
    def conversation(self) -> ConversationState:
        """The conversation since it began, or was reset."""
        return self._core.state

    @property
    def wrapped(self) -> Any:
        """The agent itself, as the factory made it."""
        return self._core.agent

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        agent = self._core.observed
        try:
            return getattr(agent, name)
        except AttributeError as error:
            if error.obj is not agent or error.name != name:
                raise  # it has one, whose own code failed
            raise AttributeError(
                f"the agent ({type(agent).__name__}) has no {name!r} to observe; "
                "give it an attribute or property of that name"
            ) from None

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"a test observes the agent; to set {name!r} on it, write `agent.wrapped.{name} = ...`"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._core.agent)})

    def __repr__(self) -> str:
        return f"<agent under test: {type(self._core.agent).__name__}>"


class AgentUnderTest(_AgentView):
    """The agent in a plain test; besides these, every attribute of the agent is there."""

    __slots__ = ("_run",)
    _run: RunAwaitable

    def __init__(self, core: ConversationRunner, run: RunAwaitable = run_awaitable) -> None:
        super().__init__(core)
        object.__setattr__(self, "_run", run)

    def send(self, message: str) -> Message:
        """Send a message and return the reply; both are recorded as a turn.

        Whatever the agent raises is raised here, and the turn so far is kept.
        """
        return run_steps(self._core.send(message), self._run)

    def reset(self) -> None:
        """Reset the agent, or take a new one where it has no `reset`, and begin anew.

        What was recorded stays recorded: its cost counts.
        """
        run_steps(self._core.reset(), self._run)


class AsyncAgentUnderTest(_AgentView):
    """The agent in an async test; besides these, every attribute of the agent is there."""

    __slots__ = ()

    def send(self, message: str) -> Coroutine[Any, Any, Message]:
        """Send a message and return the reply, once awaited; both are recorded as a turn.

        Whatever the agent raises is raised here, and the turn so far is kept. A plain
        `respond` is called as it is, on the loop: it sees the thread that made the agent.
        """
        return self._core.sending(message)

    def reset(self) -> Awaitable[None]:
        """Reset the agent, or take a new one where it has no `reset`, and begin anew.

        It happens at once, or where the agent's own reset has to be awaited, when this is
        awaited or the next message is sent. What was recorded stays recorded.
        """
        return self._core.begun(self._core.reset())
