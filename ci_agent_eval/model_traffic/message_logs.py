"""Logs of model calls and of conversations, in the formats of OpenAI and Anthropic. Pure.

A record of a log is one call (`request` and `response`, as they were sent) or one conversation
(`messages`). A conversation becomes the calls that it would have made: each message of the
assistant answers the messages before it. So both are read by the formats of the model traffic.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.contract.trajectory import Trajectory, Turn
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_objects,
    get_text,
    render_compact_json,
)
from ci_agent_eval.model_traffic.formats.registry import FORMATS
from ci_agent_eval.model_traffic.messages import FormatName
from ci_agent_eval.model_traffic.recorder import ModelCall, ModelCallPlayer, TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import ComputeCost, build_trajectory

ADDRESSES: Mapping[str, str] = {
    "openai-chat": "https://api.openai.com/v1/chat/completions",
    "openai-responses": "https://api.openai.com/v1/responses",
    "anthropic-messages": "https://api.anthropic.com/v1/messages",
}
"""The addresses of the formats that logs are read in; a log holds none."""

_JSON = {"content-type": "application/json"}
_ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


class UnreadableLogError(ValueError):
    """Raised for a record that is no call or conversation of a known format."""


@dataclass(frozen=True, slots=True)
class LoggedCall:
    """A model call of a log."""

    format: FormatName
    request: Json
    answer: Json
    latency_ms: float | None = None
    cost_usd: float | None = None
    """Cost in the log; None: it is computed from the tokens."""
    is_rebuilt: bool = False
    """Whether the call was made from a conversation, which has no finish reasons."""


def parse_logged_call(request: object, answer: object) -> LoggedCall:
    """Return the call of a request and its answer. Raises UnreadableLogError."""
    if not isinstance(request, dict) or not isinstance(answer, dict):
        raise UnreadableLogError("its request or response is no JSON object")
    if "choices" in answer:
        return LoggedCall("openai-chat", request, answer)
    if answer.get("object") == "response" or isinstance(answer.get("output"), list):
        return LoggedCall("openai-responses", request, answer)
    if isinstance(answer.get("content"), list) or answer.get("type") == "error":
        return LoggedCall("anthropic-messages", request, answer)
    raise UnreadableLogError(
        "its response is none of OpenAI's (choices, output) or Anthropic's (content)"
    )


def parse_conversation(record: Mapping[str, object]) -> Iterator[LoggedCall]:
    """Yield the calls of a conversation: `messages`, and where known `system`, `tools`, `model`.

    Raises UnreadableLogError.
    """
    messages = record.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise UnreadableLogError("its messages are no list of JSON objects")
    head = {
        name: record[name] for name in ("model", "system", "tools") if record.get(name) is not None
    }
    is_anthropic = _is_anthropic(record, messages)
    for place, message in enumerate(messages):
        if message.get("role") == "assistant":
            request: Json = {**head, "messages": messages[:place]}
            build = _build_anthropic_answer if is_anthropic else _build_chat_answer
            name: FormatName = "anthropic-messages" if is_anthropic else "openai-chat"
            yield LoggedCall(name, request, build(message, head.get("model")), is_rebuilt=True)


def _is_anthropic(record: Mapping[str, object], messages: Sequence[Json]) -> bool:
    if "system" in record or (get_text(record, "model") or "").startswith("claude"):
        return True
    blocks = (block for message in messages for block in get_objects(message, "content"))
    return any(block.get("type") in _ANTHROPIC_BLOCKS for block in blocks)


def _build_chat_answer(message: Json, model: object) -> Json:
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": reason}
    fields = {"id": "chatcmpl-log", "object": "chat.completion", "created": 0}
    return {**fields, "model": model or "", "choices": [choice]}


def _build_anthropic_answer(message: Json, model: object) -> Json:
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    has_calls = any(block.get("type") == "tool_use" for block in get_objects(message, "content"))
    return {
        "id": "msg_log",
        "type": "message",
        "role": "assistant",
        "model": model or "",
        "content": blocks,
        "stop_reason": "tool_use" if has_calls else "end_turn",
    }


def replay_log(
    calls: Iterable[LoggedCall], player: ModelCallPlayer | None = None
) -> Sequence[ModelCall]:
    """Pass calls through a recorder, as if they were made now; `player` may store them."""
    recorder = TrafficRecorder(_count_seconds(), player)
    for one in calls:
        call = recorder.start_call(
            FORMATS[one.format], ADDRESSES[one.format], render_compact_json(one.request)
        )
        call.decide()
        is_error = "error" in one.answer and not one.answer.keys() & {"choices", "output"}
        call.set_response(400 if is_error else 200, _JSON)
        call.feed(render_compact_json(one.answer))
        call.end()
    return recorder.calls


def _count_seconds() -> Callable[[], float]:
    """Return a clock by which each event is later than the one before; a log has no times."""
    counter = itertools.count()
    return lambda: float(next(counter))


def build_log_trajectory(
    calls: Sequence[LoggedCall], compute_cost: ComputeCost
) -> tuple[Trajectory, Sequence[int]]:
    """Return the trajectory of logged calls, and the number of the call of each turn.

    Times, costs and finish reasons that the log does not have are unknown.
    """
    found = build_trajectory(replay_log(calls), compute_cost=compute_cost)
    turns = tuple(_add_figures(one.turn, calls[one.call_number - 1]) for one in found.turns)
    return Trajectory(turns=turns, agents=found.agents), [one.call_number for one in found.turns]


def _add_figures(turn: Turn, call: LoggedCall) -> Turn:
    """Replace the figures of the recorder's clock by those of the log."""
    if turn.role != "assistant":
        return turn
    figures = {
        "latency_ms": call.latency_ms,
        "first_byte_ms": None,
        "cost_usd": turn.cost_usd if call.cost_usd is None else call.cost_usd,
        "finish_reason": None if call.is_rebuilt else turn.finish_reason,
    }
    return turn.model_copy(update=figures)
