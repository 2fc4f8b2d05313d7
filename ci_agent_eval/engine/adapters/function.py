"""A function as an agent: `respond(message)` or `respond(message, history)`, async or plain."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.engine.adapters.protocol import AgentTask
from ci_agent_eval.engine.infrastructure_errors import ModelError
from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.recorder import TrafficRecorder
from ci_agent_eval.recording import Reply


@dataclass(frozen=True)
class FunctionAgent:
    """A function that answers a message with a text or a `Reply`.

    A synchronous function runs in a separate thread, which cannot be stopped: after a timeout
    the episode ends, and the result of the thread is ignored.
    """

    respond: Callable[..., Any]
    """Called with the message; with a second parameter also with the history
    (`{"role": ..., "content": ...}`)."""
    name: str | None = None
    model: str | None = None

    @property
    def label(self) -> str:
        """The agent's name, or the function's."""
        return self.name or str(getattr(self.respond, "__name__", type(self.respond).__name__))

    async def answer(self, work: AgentTask) -> None:
        """Call the function and record its reply as a single turn."""
        arguments = (work.prompt, list(work.history))[: _count_arguments(self.respond)]
        with serve_children(work.traffic.recorder):
            if _is_async(self.respond):
                answer = await self.respond(*arguments)
            else:
                answer = await call_in_thread(self.respond, *arguments)
                answer = await answer if inspect.isawaitable(answer) else answer
        work.set_reply(_build_reply(answer, self.label))


def _build_reply(answer: object, label: str) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, str):
        return Reply(answer)
    raise ModelError(f"{label} returned a {type(answer).__name__}; return a text or a Reply")


def _count_arguments(function: Callable[..., Any]) -> int:
    """Return 1 for a function of the message, 2 for one of message and history."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return 2 if len(needed) > 1 else 1


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - its kind matters, not its existence
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


async def call_in_thread(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function in a daemon thread, unlike a pool's: the process does not wait for it."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def set_outcome(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(function, *arguments)
        except StopIteration as stop:
            error = RuntimeError(f"it raised {stop!r}")  # which no future can hold
        except BaseException as raised:  # noqa: BLE001 - raised again by the future
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(set_outcome, result, error)

    threading.Thread(target=work, name="agent-function", daemon=True).start()
    return await future


@contextmanager
def serve_children(recorder: TrafficRecorder) -> Iterator[None]:
    """Record the model calls of the processes that an agent's code starts in the `with` block.

    They get the variables of `model_environment`, unless they have them, or the web server of the
    gateway is not installed.
    """
    lock = threading.Lock()
    with ExitStack() as stack:

        def add_variables(requested: Mapping[Any, Any] | None) -> Mapping[Any, Any]:
            environ = os.environ if requested is None else requested
            if any(isinstance(v, str) and attribution.is_gateway_url(v) for v in environ.values()):
                return environ
            try:
                from ci_agent_eval.model_traffic.gateway.server import (  # noqa: PLC0415 - it brings the web server
                    serve_episode,
                )

                with lock:
                    address = stack.enter_context(serve_episode(recorder, environ))
            except (ImportError, InputError):
                return environ
            return {**environ, **address.build_environment()}

        recorder.add_child_variables = add_variables
        try:
            yield
        finally:
            recorder.add_child_variables = None
