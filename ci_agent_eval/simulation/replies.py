"""What an app returns, read: a text, or a mapping or an object that holds one and more."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ci_agent_eval.errors import InputError
from ci_agent_eval.recorder import TurnRecorder

_TEXT = ("text", "content")
_CALLS = ("tool_calls", "calls")
_TOKENS = ("usage", "tokens")
_ARGUMENTS = ("arguments", "args")


class Reply(NamedTuple):
    """What the app replied, and what it took."""

    text: str
    calls: tuple[Any, ...] = ()
    tokens: Any = None
    cost_usd: float | None = None
    source: Any = "live"
    stopped: str | None = None
    """Why its run ended without an answer of its own."""

    def record(self, turn: TurnRecorder) -> None:
        """Write it into the turn that is open."""
        for call in self.calls:
            turn.tool_call(
                str(_found(call, "name")),
                _found(call, *_ARGUMENTS),
                result=_found(call, "result"),
                error=_found(call, "error"),
                id=_found(call, "id"),
                duration_ms=_found(call, "duration_ms"),
            )
        turn.reply(self.text, tokens=self.tokens, cost_usd=self.cost_usd, source=self.source)


def read_reply(said: object) -> Reply:
    """Read what an app returned. Raises InputError where it holds no text."""
    if isinstance(said, str):
        return Reply(said)
    text = _found(said, *_TEXT)
    if not isinstance(text, str):
        raise InputError(
            f"the app returned a {type(said).__name__} without a text; return a text, or "
            "something with `text` (and tool_calls, usage, cost_usd where it has them)"
        )
    calls = _found(said, *_CALLS) or ()
    stop = _found(said, "stop_reason")
    return Reply(
        text,
        tuple(calls) if isinstance(calls, Iterable) else (),
        _found(said, *_TOKENS),
        _found(said, "cost_usd"),
        _found(said, "source") or "live",
        None if stop in {None, "completed", "refusal"} else f"{stop}: {_found(said, 'error')}",
    )


def _found(said: object, *names: str) -> Any:
    for name in names:
        value = said.get(name) if isinstance(said, Mapping) else getattr(said, name, None)
        if value is not None:
            return value
    return None
