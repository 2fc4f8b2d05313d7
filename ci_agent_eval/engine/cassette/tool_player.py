"""The cassette of an episode's tool calls, whose results may differ from run to run.

A tool whose call asks a model is called in replay, too: the model's answers are recorded.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.engine.cassette.answers import Json
from ci_agent_eval.engine.cassette.document import ToolRequest

if TYPE_CHECKING:
    from ci_agent_eval.engine.cassette.session import CassetteSession

_ASKS_MODELS = "asks_models"
"""Name of the outcome of a call that asked a model."""


@dataclass
class _RunningToolCall:
    """A call of a tool while it runs."""

    asks_models: bool = False


_open_call: ContextVar[_RunningToolCall | None] = ContextVar("ci_agent_eval_call", default=None)


def note_model_request() -> None:
    """Note that the tool call of this context, if any, asks a model."""
    call = _open_call.get()
    if call is not None:
        call.asks_models = True


@contextmanager
def _open() -> Iterator[_RunningToolCall]:
    call = _RunningToolCall()
    token = _open_call.set(call)
    try:
        yield call
    finally:
        _open_call.reset(token)


@dataclass(frozen=True)
class ToolPlayer:
    """Replays the tool calls of an episode, or records them."""

    session: CassetteSession

    async def run_call(
        self, tool: str, arguments: object, call: Callable[[], Awaitable[Json]]
    ) -> Json:
        """Return the recorded outcome of a tool call, or that of `call`, which is then recorded.

        Raises CassetteMissError in replay.
        """
        session = self.session
        request = ToolRequest(tool, session.normalize(to_jsonable(arguments)))
        number = session.find_exchange(request)
        if number is not None:
            outcome = session.recorded_take[number - 1].response
            return await call() if _ASKS_MODELS in outcome else outcome
        number = session.reserve_response(request)
        with _open() as opened:
            outcome = await call()
        kept = {_ASKS_MODELS: True} if opened.asks_models else session.redact(outcome)
        session.store_response(number, kept)
        return outcome
