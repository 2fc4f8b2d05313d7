"""Parsing of an agent's return value: a text, or a mapping or an object that contains one.

The accepted names are this package's, those in Opik's, OpenAI's and LangChain's messages, and
in PydanticAI's results.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

from ci_agent_eval.contract.finish_reasons import is_finish_reason
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.stops import Stop, StopReason, find_stop_cause
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall, Turn
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording import Reply, TurnRecorder

_TEXT = ("text", "content", "output")
_CALLS = ("tool_calls", "calls")
_TOKENS = ("usage", "tokens", "usage_metadata")
_COUNTS = {
    "input": ("input", "input_tokens", "prompt_tokens"),
    "output": ("output", "output_tokens", "completion_tokens"),
    "cached": ("cached", "cached_tokens", "cache_read_tokens"),
}
_TOTAL = ("total", "total_tokens")


def record_reply(reply: Reply, turn: TurnRecorder) -> None:
    """Record a parsed reply in the open turn. Raises InputError for invalid figures."""
    for call in reply.tool_calls:
        turn.tool_call(**dict(call))
    turn.reply(
        reply.text,
        tokens=reply.usage,
        cost_usd=reply.cost_usd,
        source=reply.source,
        finish_reason=reply.finish_reason,
        stop=reply.stop,
    )


def parse_reply(returned: object) -> Reply:
    """Parse an agent's return value. Raises InputError if it contains no text."""
    if isinstance(returned, str):
        return _add_stop(Reply(returned), _find_reply_stop(returned, (), None))
    text, calls = _get_first(returned, *_TEXT), _parse_tool_calls(returned)
    if text is None and calls:
        text = ""  # an agent may call tools without a text
    if not isinstance(text, str):
        raise InputError(
            f"the agent returned a {type(returned).__name__} without a text; return a text, or "
            "something with `text` (and tool_calls, usage, cost_usd where it has them)"
        )
    finish_reason = _get_finish_reason(returned)
    reply = Reply(
        text,
        calls,
        _parse_tokens(_get_first(returned, *_TOKENS)),
        _get_first(returned, "cost_usd"),
        finish_reason=finish_reason,
        source=_get_first(returned, "source") or "live",
    )
    stop = _get_stop_cause(returned) or _find_reply_stop(text, calls, finish_reason)
    return _add_stop(reply, stop)


def _add_stop(reply: Reply, stop: Stop | None) -> Reply:
    return reply if stop is None else replace(reply, stop_reason=stop.reason, error=stop.error)


def _get_stop_cause(returned: object) -> Stop | None:
    """Return the agent's `stop_reason`; None for other values, which are the model's."""
    reason = _get_first(returned, "stop_reason")
    if reason == "completed" or reason not in get_args(StopReason):
        return None
    error = _get_first(returned, "error")
    return Stop(reason, str(error or ""))


def _get_finish_reason(returned: object) -> str | None:
    """Return why the model stopped; Anthropic's messages call it `stop_reason`."""
    reason = _get_first(returned, "finish_reason")
    stop = _get_first(returned, "stop_reason")
    chosen = stop if reason is None and is_finish_reason(stop) else reason
    return clean_text(chosen) if isinstance(chosen, str) else None


def _find_reply_stop(
    text: str, calls: tuple[Mapping[str, Any], ...], finish_reason: str | None
) -> Stop | None:
    """Return why a reply is no answer; None if it is one."""
    made = tuple(ToolCall(name=clean_text(call["name"])) for call in calls)
    turn = Turn(
        role="assistant",
        content=clean_text(text),
        tool_calls=made,
        finish_reason=finish_reason,
    )
    return find_stop_cause(turn)


def _parse_tool_calls(returned: object) -> tuple[Mapping[str, Any], ...]:
    given = _get_first(returned, *_CALLS)
    if given is None:
        return ()
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InputError(
            f"the agent's tool_calls are a {type(given).__name__}; return a list of calls"
        )
    return tuple(_parse_tool_call(call) for call in given)


def _parse_tool_call(call: object) -> Mapping[str, Any]:
    inner = _get_first(call, "function") or call
    name = _get_first(inner, "name")
    if not isinstance(name, str):
        raise InputError(
            f"a tool call of the agent's ({type(call).__name__}) has no name; give each a name"
        )
    kept = {key: _get_first(call, key) for key in ("result", "error", "id", "duration_ms")}
    return {
        "name": name,
        "arguments": _parse_arguments(_get_first(inner, "arguments", "args")),
        **kept,
    }


def _parse_arguments(given: object) -> Any:
    """Return the arguments of a call; OpenAI's are the text of a JSON object."""
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given  # invalid JSON of a model is kept as text
    return given


def _parse_tokens(given: Any) -> int | TokenUsage | Mapping[str, int] | None:
    """Parse token usage; None without a total and without both input and output."""
    given = given() if callable(given) else given
    if given is None or isinstance(given, int | TokenUsage):
        return given
    counts = {name: _get_first(given, *names) for name, names in _COUNTS.items()}
    if counts["cached"] is None:
        counts["cached"] = _get_first(_get_first(given, "prompt_tokens_details"), "cached_tokens")
    known = {name: count for name, count in counts.items() if count is not None}
    total = _get_first(given, *_TOTAL)
    if not known and total is None:
        raise InputError(
            f"the agent's usage is a {type(given).__name__} without input and output; return "
            '{"input": ..., "output": ...}, or None where it was not measured'
        )
    return known if {"input", "output"} <= known.keys() else _complete_from_total(known, total)


def _complete_from_total(known: Mapping[str, int], total: Any) -> Mapping[str, int] | None:
    """Compute missing input or output tokens from the total; None without a total."""
    if not isinstance(total, int):
        return None
    present, missing = ("output", "input") if "output" in known else ("input", "output")
    count = known.get(present, 0)
    # The recorder refuses a value that is no number.
    return {**known, missing: total - count} if isinstance(count, int) else known


def _get_first(returned: object, *names: str) -> Any:
    for name in names:
        value = (
            returned.get(name) if isinstance(returned, Mapping) else getattr(returned, name, None)
        )
        if value is not None:
            return value
    return None
