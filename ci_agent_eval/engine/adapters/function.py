"""A function as an agent: `respond(message)` or `respond(message, history)`, async or plain."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.engine.adapters.protocol import AgentTask, Reply
from ci_agent_eval.engine.infrastructure_errors import ModelError


@dataclass(frozen=True)
class FunctionAgent:
    """A function that answers a message with a text or a `Reply`.

    A plain function runs in a thread of its own. It cannot be stopped there: after a
    timeout its episode has ended, and the thread goes on to its own end unheard.
    """

    respond: Callable[..., Any]
    """Called with the message and, if it takes two, with the messages before it
    (`{"role": ..., "content": ...}`)."""
    name: str | None = None
    model: str | None = None

    @property
    def label(self) -> str:
        """Its name, or the function's."""
        return self.name or str(getattr(self.respond, "__name__", type(self.respond).__name__))

    async def answer(self, work: AgentTask) -> None:
        """Call the function, and take what it returns as the agent's one turn."""
        given = (work.prompt, list(work.history))[: _count_arguments(self.respond)]
        if _is_async(self.respond):
            said = await self.respond(*given)
        else:
            said = await _call_in_thread(self.respond, *given)
            said = await said if inspect.isawaitable(said) else said
        work.set_reply(_build_reply(said, self.label))


def _build_reply(said: object, label: str) -> Reply:
    if isinstance(said, Reply):
        return said
    if isinstance(said, str):
        return Reply(said)
    raise ModelError(f"{label} returned a {type(said).__name__}; return a text or a Reply")


def _count_arguments(function: Callable[..., Any]) -> int:
    """Return whether a function takes the message alone (1), or the history as well (2)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in parameters if p.kind in positional and p.default is p.empty]
    return 2 if len(needed) > 1 else 1


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 - its kind is asked for, not whether
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


async def _call_in_thread(function: Callable[..., Any], *given: Any) -> Any:
    """Run a function in a thread that no process waits for at its end, as a pool's would be."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def tell(result: Any, error: BaseException | None) -> None:
        if told.done():
            return
        if error is None:
            told.set_result(result)
        else:
            told.set_exception(error)

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(function, *given)
        except StopIteration as stop:
            error = RuntimeError(f"it raised {stop!r}")  # which no future can hold
        except BaseException as raised:  # noqa: BLE001 - told to the one who waits
            error = raised
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=work, name="agent-function", daemon=True).start()
    return await told
