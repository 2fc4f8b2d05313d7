"""What an agent says of itself, line by line, as turns. Pure.

One JSON object a line. `type` says what it is:

    {"type": "text", "text": "..."}                     said; several of them are one text
    {"type": "tool_call", "name": "...", "id": "...", "arguments": {...}}
    {"type": "tool_result", "id": "...", "result": ...}  or "error": "..."
    {"type": "usage", "input": 1, "output": 2, "cached": 0, "cost_usd": 0.01,
     "finish_reason": "stop"}
    {"type": "end", "stop_reason": "completed", "error": "..."}

`id` may be left out where calls are answered in order. A text or a call after a result
begins the next turn; `usage` is that of the turn it stands in; `end` is not needed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.stops import StopReason
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall, Turn
from ci_agent_eval.engine.adapters.protocol import COMPLETED, build_reported_stop, parse_tool_call
from ci_agent_eval.engine.limits import Stop

Event = Mapping[str, Any]


@dataclass
class Transcript:
    """The turns so far. `at_ms` of `add` counts from when the prompt was given."""

    turns: list[Turn] = field(default_factory=list)
    stop: Stop = COMPLETED
    _turn_began_ms: float = 0.0
    _answered: bool = False
    """Whether the last turn's calls have a result: what is said next is another turn."""

    def add_line(self, line: str, at_ms: float) -> None:
        """Take one line. Raises ValueError, which says what is wrong with it."""
        if not line.strip():
            return
        try:
            event = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"it is no JSON ({error})") from error
        if not isinstance(event, dict) or str(event.get("type")) not in _EVENTS:
            raise ValueError(f"it is no object with a type of {', '.join(_EVENTS)}")
        _EVENTS[event["type"]](self, event, at_ms)

    def _text(self, event: Event, at_ms: float) -> None:
        text = event.get("text")
        if not isinstance(text, str):
            raise ValueError("its text is none")  # noqa: TRY004 - one error for all of them
        turn = self._speaking(at_ms)
        self._change(content=turn.content + clean_text(text))

    def _call(self, event: Event, at_ms: float) -> None:
        given = {name: event[name] for name in ("id", "name", "arguments") if name in event}
        call = parse_tool_call(given)
        turn = self._speaking(at_ms)
        self._change(tool_calls=(*turn.tool_calls, call))

    def _result(self, event: Event, at_ms: float) -> None:
        calls = list(self.turns[-1].tool_calls) if self.turns else []
        wanted = event.get("id")
        place = next((n for n, call in enumerate(calls) if _is_open(call, wanted)), None)
        if place is None:
            raise ValueError("it answers no tool call that is open")
        if event.get("error") is not None:
            told: dict[str, Any] = {"error": clean_text(str(event["error"]))}
        else:
            told = {"result": to_jsonable(event.get("result"))}
        calls[place] = calls[place].model_copy(update=told)
        self._change(tool_calls=tuple(calls))
        self._answered, self._turn_began_ms = True, at_ms

    def _usage(self, event: Event, at_ms: float) -> None:
        if not self.turns:
            self._speaking(at_ms)
        figures = {name: event[name] for name in ("input", "output", "cached") if name in event}
        tokens = TokenUsage.model_validate(figures) if figures else self.turns[-1].tokens
        reason = event.get("finish_reason")
        checked = Turn(
            role="assistant",
            tokens=tokens,
            cost_usd=event.get("cost_usd"),
            finish_reason=None if reason is None else clean_text(str(reason)),
        )
        self._change(
            tokens=checked.tokens, cost_usd=checked.cost_usd, finish_reason=checked.finish_reason
        )

    def _end(self, event: Event, _: float) -> None:
        reason = event.get("stop_reason", "completed")
        if reason not in get_args(StopReason):
            raise ValueError(f"its stop_reason is none of {', '.join(get_args(StopReason))}")
        self.stop = build_reported_stop(reason, str(event.get("error") or ""))

    def _speaking(self, at_ms: float) -> Turn:
        """Return the turn that is being taken, after beginning another where one is due."""
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
    "text": Transcript._text,  # noqa: SLF001 - the table of this class
    "tool_call": Transcript._call,  # noqa: SLF001 - the table of this class
    "tool_result": Transcript._result,  # noqa: SLF001 - the table of this class
    "usage": Transcript._usage,  # noqa: SLF001 - the table of this class
    "end": Transcript._end,  # noqa: SLF001 - the table of this class
}
TYPES: Sequence[str] = tuple(_EVENTS)
