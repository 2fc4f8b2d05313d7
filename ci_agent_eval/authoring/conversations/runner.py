"""A running conversation: the part that sync and async tests share."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Coroutine, Generator, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from inspect import CORO_CREATED, getcoroutinestate
from typing import Any

from ci_agent_eval.authoring.conversations.factory import AgentFactory, OpenedAgent
from ci_agent_eval.authoring.conversations.messages import ConversationState, Message
from ci_agent_eval.authoring.simulation.app_under_test import (
    AppAsker,
    AppRequest,
    build_asker,
    is_engine_agent,
)
from ci_agent_eval.authoring.simulation.awaiting import RunAwaitable, await_if_needed
from ci_agent_eval.authoring.simulation.message_files import AttachedBytes, MessageFile, parse_files
from ci_agent_eval.authoring.simulation.run import build_thread_id
from ci_agent_eval.contract.stops import AGENT_STOPS, Stop
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import EpisodeRecorder


class SingleTaskRunner:
    """Runs awaitables one after the other in one task and context; call `end` afterwards."""

    def __init__(self, run: RunAwaitable, context: Context | None = None) -> None:
        self._run = run
        self._context = context
        self._task: asyncio.Task[None] | None = None
        self._request: asyncio.Future[tuple[Awaitable[Any], asyncio.Future[Any]] | None]

    def __call__(self, awaitable: Awaitable[Any]) -> Any:
        """Run an awaitable to completion, outside of any event loop."""
        return self._run(self._await_in_task(awaitable))

    def end(self) -> None:
        """End the task, if one was started."""
        if self._task is not None and not self._task.done():
            self._run(self._finish_task(self._task))

    async def _await_in_task(self, awaitable: Awaitable[Any]) -> Any:
        loop = asyncio.get_running_loop()
        if self._task is None or self._task.done():
            self._request = loop.create_future()
            self._task = loop.create_task(self._run_requests(), context=self._context)
        result_future: asyncio.Future[Any] = loop.create_future()
        self._request.set_result((awaitable, result_future))
        try:
            return await asyncio.shield(result_future)
        except asyncio.CancelledError:
            if not result_future.done():  # the wait was cancelled: Ctrl-C, a timeout
                self._task.cancel()
                await asyncio.wait([result_future])
            return result_future.result()

    async def _run_requests(self) -> None:
        loop = asyncio.get_running_loop()
        while (request := await self._request) is not None:
            awaitable, result_future = request
            self._request = loop.create_future()
            try:
                result = await awaitable
            except asyncio.CancelledError:
                result_future.cancel()
                if (task := asyncio.current_task()) is not None:
                    task.uncancel()
            except BaseException as error:  # noqa: BLE001 - raised to the waiting caller
                result_future.set_exception(error)
            else:
                result_future.set_result(result)

    async def _finish_task(self, task: asyncio.Task[None]) -> None:
        self._request.set_result(None)
        await asyncio.wait([task])


__tracebackhide__ = True  # a failure shows the frames of the test and of its agent


class AgentStoppedError(Exception):
    """Raised if an infrastructure error stopped the agent's run; the episode is an error."""


class AgentGaveUpError(AssertionError):
    """Raised if the agent's run ended without an answer, e.g. at a limit; the episode failed."""

    is_recorded = True
    """The recorder has its assertion already."""


@dataclass(frozen=True, slots=True)
class ConversationContext:
    """Values that the plugin's fixture passes to a conversation."""

    recorder: EpisodeRecorder
    cleanup_errors: list[Exception] = field(default_factory=list)
    """Errors of clean-ups: the fixture raises them in its own teardown."""


class ConversationRunner:
    """Runs a conversation, for sync and async tests."""

    def __init__(
        self, factory: AgentFactory, fixtures: Mapping[str, Any], context: ConversationContext
    ) -> None:
        self._factory = factory
        self._fixtures = fixtures
        self._context = context
        self._opened: OpenedAgent | None = None
        self._agent: Any = None
        self._ask: AppAsker | None = None
        self._attached = AttachedBytes()
        self._first_turn = 0
        self._started_reset: Awaitable[Any] | None = None
        self._sent: list[tuple[Coroutine[Any, Any, Message], str]] = []
        self._pending_message: str | None = None

    async def open(self) -> None:
        """Create the agent. Raises InputError for an invalid one; `close` must follow anyway."""
        self._opened = await self._factory.open(self._fixtures)
        self._agent = self._opened.agent
        _require_agent(self._agent)
        self._begin_thread()

    async def close(self) -> None:
        """Clean the agent up, if there is one; errors go to `cleanup_errors`."""
        try:
            await self.finish_reset()
        except Exception as error:  # noqa: BLE001 - kept
            self._context.cleanup_errors.append(error)
        opened, self._opened = self._opened, None
        if opened is None:
            return
        try:
            await opened.close()
        except Exception as error:  # noqa: BLE001 - kept
            self._context.cleanup_errors.append(error)

    async def send(self, message: str, files: Sequence[MessageFile] = ()) -> Message:
        """Ask the agent, and return its recorded answer."""
        if not isinstance(message, str):
            raise InputError(f"agent.send: give the message as a text, not {message!r}")
        if self._pending_message is not None:
            problem = (
                f"agent.send: {self._pending_message!r} is still being answered; await it first"
            )
            self._context.recorder.refused.append(problem)
            raise InputError(problem)
        attached = parse_files("agent.send: files", files)
        await self.finish_reset()
        if self._ask is None or self._opened is None:
            raise InputError("agent.send: the conversation has ended, and its agent is closed")
        if attached:
            self._ask.require_files()
            self._attached.add("agent.send: files", attached)
        self._pending_message = message
        before = len(self.state.agent_messages)
        try:
            answer = await self._ask.ask(self._build_request(message, attached))
        finally:
            self._pending_message = None
        if answer.stop is not None:
            raise _build_stop_error(answer.stop)
        replies = self.state.agent_messages
        # A run that may end without an answer (`allowed_stops`) may have recorded none.
        return replies[-1] if len(replies) > before else Message("assistant", answer.text)

    def _build_request(self, message: str, files: tuple[MessageFile, ...]) -> AppRequest:
        known = [{"role": each.role, "content": each.content} for each in self.state.messages]
        history = [*known, {"role": "user", "content": message}]
        return AppRequest(message, history, len(known), files)

    def build_sender(
        self, message: str, files: Sequence[MessageFile] = ()
    ) -> Coroutine[Any, Any, Message]:
        """Return a coroutine that sends a message; `refuse_unanswered` finds unawaited ones."""
        coroutine = self.send(message, files)
        self._sent.append((coroutine, message))
        return coroutine

    def refuse_unanswered(self) -> None:
        """Raise InputError if the test ended before a message was answered."""
        if problem := self._describe_unanswered():
            raise InputError(problem)

    def note_unanswered(self, error: BaseException) -> None:
        """Add a note about an unanswered message to the test's error: it may be the cause."""
        if problem := self._describe_unanswered():
            error.add_note(problem)

    def _describe_unanswered(self) -> str | None:
        never = [(c, m) for c, m in self._sent if getcoroutinestate(c) == CORO_CREATED]
        self._sent.clear()
        for coroutine, _ in never:
            coroutine.close()  # otherwise Python warns at some later time
        if never:
            message = never[0][1]
            return f"agent.send({message!r}) was not awaited, so nothing was sent; write `await`"
        if self._pending_message is not None:
            message = self._pending_message
            return f"agent.send: the test ended before {message!r} was answered; await it"
        return None

    async def reset(self) -> None:
        """Reset the agent, or create another one; the recorded turns are kept."""
        await self.start_reset()

    def start_reset(self) -> Awaitable[None]:
        """Call the agent's `reset`; what must be awaited is awaited before the next message."""
        if self._opened is None:
            raise InputError("agent.reset: the conversation has ended, and its agent is closed")
        self._require_reset()
        self._first_turn = len(self._context.recorder.turns)
        reset = getattr(self.agent, "reset", None)
        started = reset() if callable(reset) else self._replace_agent()
        if inspect.isawaitable(started):
            self._started_reset = started
        else:
            self._begin_thread()
        return StartedReset(self)

    async def finish_reset(self) -> None:
        """Await the rest of a reset, if one has been started."""
        started, self._started_reset = self._started_reset, None
        if started is not None:
            await await_if_needed(started)
            self._begin_thread()

    async def _replace_agent(self) -> None:
        await self.close()
        await self.open()

    def _require_reset(self) -> None:
        if self._started_reset is not None:
            raise InputError("agent.reset() has not come to its end; write `await agent.reset()`")

    @property
    def agent(self) -> Any:
        """The agent; also after its clean-up."""
        return self._agent

    @property
    def observed_agent(self) -> Any:
        """The agent, for reading its attributes. Raises InputError while its reset is running."""
        self._require_reset()
        return self._agent

    @property
    def state(self) -> ConversationState:
        """The messages since the beginning or the last reset."""
        started, recorder = self._first_turn, self._context.recorder
        return ConversationState(lambda: recorder.turns[started:])

    def _begin_thread(self) -> None:
        recorder = self._context.recorder
        self._first_turn = len(recorder.turns)
        self._attached = AttachedBytes()
        self._ask = build_asker(self.agent, build_thread_id(recorder), {}, recorder)


class StartedReset:
    """A reset in progress, which a test may await."""

    def __init__(self, runner: ConversationRunner) -> None:
        self._runner = runner

    def __await__(self) -> Generator[Any, Any, None]:
        return self._runner.finish_reset().__await__()


def _require_agent(agent: object) -> None:
    can_respond = callable(getattr(agent, "respond", None)) or callable(agent)
    if not isinstance(agent, type) and (can_respond or is_engine_agent(agent)):
        return
    made = f"the class {agent.__name__}" if isinstance(agent, type) else type(agent).__name__
    raise InputError(
        f"the factory made {made if agent is not None else 'nothing'}, which is not an agent; an "
        "agent has `respond(message)`, plain or async, or is one of the engine's"
    )


def _build_stop_error(stop: Stop) -> Exception:
    """Build the error for a run that ended without an answer, classified as in the engine."""
    is_agent_failure = stop.reason in AGENT_STOPS
    return AgentGaveUpError(stop.sentence) if is_agent_failure else AgentStoppedError(stop.sentence)
