"""Parsing of an agent's transcript into turns. Pure.

One JSON object per line, with its kind in `type`:

    {"type": "text", "text": "..."}                     consecutive texts are joined
    {"type": "tool_call", "name": "...", "id": "...", "arguments": {...}}
    {"type": "tool_result", "id": "...", "result": ...}  or "error": "..."
    {"type": "usage", "input": 1, "output": 2, "cached": 0, "cost_usd": 0.01,
     "finish_reason": "stop"}
    {"type": "end", "stop_reason": "completed", "error": "..."}

`id` may be omitted if calls are answered in order. A text or a call after a result begins the
next turn; `usage` belongs to the current turn; `end` is optional.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from ci_agent_eval.contract.jsonable import clean_optional_text, clean_text, to_jsonable
from ci_agent_eval.contract.stops import COMPLETED, Stop, StopReason
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall, Turn
from ci_agent_eval.engine.adapters.protocol import build_reported_stop, parse_tool_call

Event = Mapping[str, Any]


@dataclass
class Transcript:
    """The turns so far. `at_ms` of `add_line` counts from the prompt."""

    turns: list[Turn] = field(default_factory=list)
    stop: Stop = COMPLETED
    _turn_began_ms: float = 0.0
    _answered: bool = False
    """Whether the last turn's calls have a result, so that the next text begins a turn."""

    def add_line(self, line: str, at_ms: float) -> None:
        """Add one line. Raises ValueError with the problem of the line."""
        if not line.strip():
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"it is not JSON ({error})") from error
        if not isinstance(event, dict) or str(event.get("type")) not in _EVENTS:
            raise ValueError(f"it is not an object with a type of {', '.join(_EVENTS)}")
        _EVENTS[event["type"]](self, event, at_ms)

    def _add_text(self, event: Event, at_ms: float) -> None:
        text = event.get("text")
        if not isinstance(text, str):
            raise ValueError("its text is none")  # noqa: TRY004 - one error for all of them
        turn = self._get_current_turn(at_ms)
        self._change(content=turn.content + clean_text(text))

    def _add_call(self, event: Event, at_ms: float) -> None:
        fields = {name: event[name] for name in ("id", "name", "arguments") if name in event}
        call = parse_tool_call(fields)
        turn = self._get_current_turn(at_ms)
        self._change(tool_calls=(*turn.tool_calls, call))

    def _add_result(self, event: Event, at_ms: float) -> None:
        calls = list(self.turns[-1].tool_calls) if self.turns else []
        wanted = event.get("id")
        place = next((n for n, call in enumerate(calls) if _is_open(call, wanted)), None)
        if place is None:
            raise ValueError("it answers no tool call that is open")
        if event.get("error") is not None:
            outcome: dict[str, Any] = {"error": clean_text(str(event["error"]))}
        else:
            outcome = {"result": to_jsonable(event.get("result"))}
        calls[place] = calls[place].model_copy(update=outcome)
        self._change(tool_calls=tuple(calls))
        self._answered, self._turn_began_ms = True, at_ms

    def _add_usage(self, event: Event, at_ms: float) -> None:
        if not self.turns:
            self._get_current_turn(at_ms)
        figures = {name: event[name] for name in ("input", "output", "cached") if name in event}
        tokens = TokenUsage.model_validate(figures) if figures else self.turns[-1].tokens
        reason = event.get("finish_reason")
        validated = Turn(
            role="assistant",
            tokens=tokens,
            cost_usd=event.get("cost_usd"),
            finish_reason=clean_optional_text(reason),
        )
        self._change(
            tokens=validated.tokens,
            cost_usd=validated.cost_usd,
            finish_reason=validated.finish_reason,
        )

    def _set_stop(self, event: Event, _: float) -> None:
        reason = event.get("stop_reason", "completed")
        if reason not in get_args(StopReason):
            raise ValueError(f"its stop_reason is none of {', '.join(get_args(StopReason))}")
        self.stop = build_reported_stop(reason, str(event.get("error") or ""))

    def _get_current_turn(self, at_ms: float) -> Turn:
        """Return the current turn; begins a new one after a result."""
        if not self.turns or self._answered:
            self.turns.append(Turn(role="assistant", source="live"))
            self._answered = False
        self._change(latency_ms=round(max(at_ms - self._turn_began_ms, 0.0), 3))
        return self.turns[-1]

    def _change(self, **changed: Any) -> None:
        self.turns[-1] = self.turns[-1].model_copy(update=changed)


def _is_open(call: ToolCall, wanted: object) -> bool:
    return call.result is None and call.error is None and wanted in (None, call.id)


_EVENTS: Mapping[str, Callable[[Transcript, Event, float], None]] = {
    "text": Transcript._add_text,  # noqa: SLF001 - the table of this class
    "tool_call": Transcript._add_call,  # noqa: SLF001 - the table of this class
    "tool_result": Transcript._add_result,  # noqa: SLF001 - the table of this class
    "usage": Transcript._add_usage,  # noqa: SLF001 - the table of this class
    "end": Transcript._set_stop,  # noqa: SLF001 - the table of this class
}
TYPES: Sequence[str] = tuple(_EVENTS)
