"""The agent as a test holds it: actions, the conversation, and all it has to observe."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping
from typing import Any

from ci_agent_eval.conversations.factory import Factory, Opened
from ci_agent_eval.conversations.messages import ConversationState, Message
from ci_agent_eval.errors import InputError
from ci_agent_eval.recorder import EpisodeRecorder
from ci_agent_eval.simulation.app import Ask, ask_of, is_engine_agent
from ci_agent_eval.simulation.run import new_thread_id
from ci_agent_eval.simulation.running import run_awaitable
from ci_agent_eval.simulation.steps import Steps, await_steps, run_steps


class AgentStoppedError(Exception):
    """The agent said that its run broke off; the episode is an error, not a failure."""


class _Core:
    """What plain and async tests have in common, as steps."""

    def __init__(
        self, factory: Factory, fixtures: Mapping[str, Any], recorder: EpisodeRecorder
    ) -> None:
        self._factory = factory
        self._fixtures = fixtures
        self._recorder = recorder
        self._opened: Opened | None = None
        self._agent: Any = None
        self._ask: Ask | None = None
        self._started = 0
        self._unfinished: _Begun | None = None

    def open(self) -> Steps[None]:
        self._opened = yield from self._factory.open(self._fixtures)
        self._agent = self._opened.agent
        _refuse_no_agent(self._agent)
        self._begin()

    def close(self) -> Steps[None]:
        yield from self._settle()
        opened, self._opened = self._opened, None
        if opened is not None:
            yield from opened.close()

    def send(self, message: str) -> Steps[Message]:
        if not isinstance(message, str):
            raise InputError(f"agent.send: give the message as a text, not {message!r}")
        yield from self._settle()
        if self._ask is None or self._opened is None:
            raise InputError("agent.send: the conversation has ended, and its agent is closed")
        answer = yield from self._ask(message)
        if answer.stopped is not None:
            raise AgentStoppedError(answer.stopped)
        last = self.state.last
        assert last is not None, "an answer was recorded"  # noqa: S101 - as `ask` promises
        return last

    def reset(self) -> Steps[None]:
        yield from self._settle()
        reset = getattr(self.agent, "reset", None)
        if callable(reset):
            done = reset()
            if isinstance(done, Awaitable):
                yield done
            self._begin()
        else:
            yield from self.close()
            yield from self.open()

    def begun(self, steps: Steps[None]) -> _Begun:
        """Start steps now; what of them has to be awaited is done before the next message."""
        self._unfinished = _Begun(steps)
        return self._unfinished

    @property
    def agent(self) -> Any:
        """The agent; also after its clean-up, for whoever looks at what it left."""
        return self._agent

    @property
    def state(self) -> ConversationState:
        started = self._started
        return ConversationState(lambda: self._recorder.turns[started:])

    def _begin(self) -> None:
        self._started = len(self._recorder.turns)
        thread_id = new_thread_id(self._recorder)
        self._ask = ask_of(self.agent, thread_id, {}, self._recorder)

    def _settle(self) -> Steps[None]:
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is not None:
            yield from unfinished.rest()


class _Begun:
    """Steps that have been started, up to where something has to be awaited."""

    def __init__(self, steps: Steps[None]) -> None:
        self._steps = steps
        self._wanted: Awaitable[Any] | None = next(steps, None)

    def rest(self) -> Steps[None]:
        """Go on to the end; nothing where that was reached."""
        while self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            try:
                answer = yield wanted
            except BaseException as error:  # noqa: BLE001 - the steps' own to handle
                self._advance(lambda error=error: self._steps.throw(error))
            else:
                self._advance(lambda answer=answer: self._steps.send(answer))

    def _advance(self, go: Any) -> None:
        try:
            self._wanted = go()
        except StopIteration:
            self._wanted = None

    def __await__(self) -> Generator[Any, Any, None]:
        return await_steps(self.rest()).__await__()


class _Observed:
    """Gives what the agent itself exposes, by its own names."""

    def __init__(self, core: _Core) -> None:
        self._core = core

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
        __tracebackhide__ = True
        agent = self._core.agent
        try:
            return getattr(agent, name)
        except AttributeError as error:
            if error.obj is not agent:
                raise  # it has one, whose own code failed
            raise AttributeError(
                f"the agent ({type(agent).__name__}) has no {name!r} to observe; "
                "give it an attribute or property of that name"
            ) from None

    def __repr__(self) -> str:
        return f"<agent under test: {type(self._core.agent).__name__}>"


class AgentUnderTest(_Observed):
    """The agent in a plain test; besides these, every attribute of the agent is there."""

    def send(self, message: str) -> Message:
        """Send a message and return the reply; both are recorded as a turn.

        Whatever the agent raises is raised here, and the turn so far is kept.
        """
        return run_steps(self._core.send(message), run_awaitable)

    def reset(self) -> None:
        """Reset the agent, or take a new one where it has no `reset`, and begin anew.

        What was recorded stays recorded: its cost counts.
        """
        run_steps(self._core.reset(), run_awaitable)


class AsyncAgentUnderTest(_Observed):
    """The agent in an async test; besides these, every attribute of the agent is there."""

    async def send(self, message: str) -> Message:
        """Send a message and return the reply; both are recorded as a turn.

        Whatever the agent raises is raised here, and the turn so far is kept.
        """
        return await await_steps(self._core.send(message))

    def reset(self) -> Awaitable[None]:
        """Reset the agent, or take a new one where it has no `reset`, and begin anew.

        It happens at once, or where the agent's own reset has to be awaited, when this is
        awaited or the next message is sent. What was recorded stays recorded.
        """
        return self._core.begun(self._core.reset())


def _refuse_no_agent(agent: object) -> None:
    if callable(getattr(agent, "respond", None)) or callable(agent) or is_engine_agent(agent):
        return
    raise InputError(
        f"the factory made a {type(agent).__name__}, which is no agent; an agent has "
        "`respond(message)`, plain or async, or is one of the engine's"
    )
