"""A conversation while its test runs: what plain and async tests have in common, as steps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from functools import partial
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any, Protocol

from ci_agent_eval.authoring.conversations.factory import AgentFactory, OpenedAgent
from ci_agent_eval.authoring.conversations.messages import ConversationState, Message
from ci_agent_eval.authoring.simulation.app_under_test import AskApp, build_asker, is_engine_agent
from ci_agent_eval.authoring.simulation.run import build_thread_id
from ci_agent_eval.authoring.simulation.steps import Steps, await_if_needed, await_steps
from ci_agent_eval.contract.stops import AGENT_STOPS, StopCause
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder

__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class AgentStoppedError(Exception):
    """The agent's run broke off by an infrastructure error; the episode is an error."""


class AgentGaveUpError(AssertionError):
    """The agent's run ended without an answer, at a limit for example; the episode has failed."""

    is_recorded = True
    """The recorder has its assertion already."""


class ContextProtocol(Protocol):
    """Where a conversation takes place."""

    @property
    def recorder(self) -> EpisodeRecorder:
        """Records the episode."""

    @property
    def broken(self) -> list[Exception]:
        """Takes what cleaning up raised."""


class ConversationRunner:
    """What plain and async tests have in common, as steps."""

    def __init__(
        self, factory: AgentFactory, fixtures: Mapping[str, Any], place: ContextProtocol
    ) -> None:
        self._factory = factory
        self._fixtures = fixtures
        self._place = place
        self._opened: OpenedAgent | None = None
        self._agent: Any = None
        self._ask: AskApp | None = None
        self._started = 0
        self._unfinished: StartedSteps | None = None
        self._sent: list[tuple[Coroutine[Any, Any, Message], str]] = []
        self._answering: str | None = None

    def open(self) -> Steps[None]:
        """Make the agent. Raises InputError where it is none; `close` cleans it up even so."""
        self._opened = yield from self._factory.open(self._fixtures)
        self._agent = self._opened.agent
        _require_agent(self._agent)
        self._begin()

    def close(self) -> Steps[None]:
        """Clean the agent up, if there is one; what that raises is kept and told later."""
        try:
            yield from self._settle()
        except Exception as error:  # noqa: BLE001 - kept
            self._place.broken.append(error)
        opened, self._opened = self._opened, None
        if opened is None:
            return
        try:
            yield from opened.close()
        except Exception as error:  # noqa: BLE001 - kept
            self._place.broken.append(error)

    def send(self, message: str) -> Steps[Message]:
        """Ask the agent, and return its answer as it was recorded."""
        if not isinstance(message, str):
            raise InputError(f"agent.send: give the message as a text, not {message!r}")
        if self._answering is not None:
            raise InputError(
                f"agent.send: {self._answering!r} is still being answered; await it first"
            )
        yield from self._settle()
        if self._ask is None or self._opened is None:
            raise InputError("agent.send: the conversation has ended, and its agent is closed")
        self._answering = message
        before = len(self.state.agent_messages)
        try:
            answer = yield from self._ask(message)
        finally:
            self._answering = None
        if answer.stopped is not None:
            raise _build_stop_error(answer.stopped)
        replies = self.state.agent_messages
        # A run that ended without an answer, as the test allows, may have recorded none.
        return replies[-1] if len(replies) > before else Message("assistant", answer.text)

    def sending(self, message: str) -> Coroutine[Any, Any, Message]:
        """Return what sends a message once it is awaited, and remember it until then."""
        coroutine = await_steps(self.send(message))
        self._sent.append((coroutine, message))
        return coroutine

    def refuse_unanswered(self) -> None:
        """Raise InputError where the test ended before what it sent was answered."""
        if complaint := self._unanswered():
            raise InputError(complaint)

    def note_unanswered(self, error: BaseException) -> None:
        """Tell it beside what the test raised: it may be the reason."""
        if complaint := self._unanswered():
            error.add_note(complaint)

    def _unanswered(self) -> str | None:
        never = [(c, m) for c, m in self._sent if getcoroutinestate(c) == CORO_CREATED]
        self._sent.clear()
        for coroutine, _ in never:
            coroutine.close()  # Python would warn of it, somewhere else
        if never:
            message = never[0][1]
            return f"agent.send({message!r}) was not awaited, so nothing was sent; write `await`"
        if self._answering is not None:
            return f"agent.send: the test ended before {self._answering!r} was answered; await it"
        return None

    def reset(self) -> Steps[None]:
        """Reset the agent, or make another one; what was recorded stays."""
        yield from self._settle()
        if self._opened is None:
            raise InputError("agent.reset: the conversation has ended, and its agent is closed")
        self._started = len(self._place.recorder.turns)
        reset = getattr(self.agent, "reset", None)
        if callable(reset):
            yield from await_if_needed(reset())
            self._begin()
        else:
            yield from self.close()
            yield from self.open()

    def begun(self, steps: Steps[None]) -> StartedSteps:
        """Start steps now; what of them has to be awaited is done before the next message."""
        self._unfinished = StartedSteps(steps)
        return self._unfinished

    @property
    def agent(self) -> Any:
        """The agent; also after its clean-up, for whoever looks at what it left."""
        return self._agent

    @property
    def observed(self) -> Any:
        """The agent to look at. Raises InputError while its reset has not come to its end."""
        if self._unfinished is not None and not self._unfinished.is_over:
            raise InputError("agent.reset() has not come to its end; write `await agent.reset()`")
        return self._agent

    @property
    def state(self) -> ConversationState:
        """What was said since the beginning, or the last reset."""
        started, recorder = self._started, self._place.recorder
        return ConversationState(lambda: recorder.turns[started:])

    def _begin(self) -> None:
        recorder = self._place.recorder
        self._started = len(recorder.turns)
        self._ask = build_asker(self.agent, build_thread_id(recorder), {}, recorder)

    def _settle(self) -> Steps[None]:
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is not None:
            yield from unfinished.rest()


class StartedSteps:
    """Steps that have been started, up to where something has to be awaited."""

    def __init__(self, steps: Steps[None]) -> None:
        self._steps = steps
        self._over = False
        self._wanted: Awaitable[Any] | None = None
        self._advance(lambda: next(steps))

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be awaited."""
        return self._over

    def rest(self) -> Steps[None]:
        """Go on to the end; nothing where that was reached."""
        while self._wanted is not None:
            wanted, self._wanted = self._wanted, None
            try:
                answer = yield wanted
            except BaseException as error:  # noqa: BLE001 - the steps' own to handle
                self._advance(partial(self._steps.throw, error))
            else:
                self._advance(partial(self._steps.send, answer))

    def _advance(self, go: Callable[[], Awaitable[Any]]) -> None:
        try:
            self._wanted = go()
        except StopIteration:
            self._over = True
        except BaseException:
            self._over = True
            raise

    def __await__(self) -> Generator[Any, Any, None]:
        return await_steps(self.rest()).__await__()


def _require_agent(agent: object) -> None:
    can_respond = callable(getattr(agent, "respond", None)) or callable(agent)
    if not isinstance(agent, type) and (can_respond or is_engine_agent(agent)):
        return
    made = f"the class {agent.__name__}" if isinstance(agent, type) else type(agent).__name__
    raise InputError(
        f"the factory made {made if agent is not None else 'nothing'}, which is no agent; an "
        "agent has `respond(message)`, plain or async, or is one of the engine's"
    )


def _build_stop_error(stop: StopCause) -> Exception:
    """Return what to raise over a run that ended without an answer, as the engine counts it."""
    is_agents = stop.reason in AGENT_STOPS
    return AgentGaveUpError(stop.sentence) if is_agents else AgentStoppedError(stop.sentence)
