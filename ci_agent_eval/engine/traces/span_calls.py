"""The model calls of spans as calls of OpenAI's chat API, for a cassette. Pure.

Spans hold messages, but not the request as it was sent; a chat request can hold all of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ci_agent_eval.contract.trajectory import ToolCall
from ci_agent_eval.engine.traces import spans as genai
from ci_agent_eval.engine.traces.indexed_messages import Message
from ci_agent_eval.engine.traces.spans import SpanLike
from ci_agent_eval.engine.traces.trajectory import SpanTree
from ci_agent_eval.model_traffic.message_logs import LoggedCall

_NO_MODEL = "unknown"
_INSTRUCTIONS = "gen_ai.system_instructions"


def build_span_calls(spans: Iterable[SpanLike]) -> Sequence[LoggedCall]:
    """Return the answered model calls of a trace, in the order of their starts."""
    tree = SpanTree(spans)
    calls = (_build_call(span) for span in tree.ordered if tree.is_model_call(span))
    return [call for call in calls if call is not None]


def _build_call(span: SpanLike) -> LoggedCall | None:
    answers = genai.get_output_messages(span)
    if not answers:
        return None
    model = genai.get_model(span) or _NO_MODEL
    messages = [*_read_instructions(span), *_convert_messages(genai.get_input_messages(span))]
    texts = [text for text in map(genai.get_message_text, answers) if text]
    calls = [call for answer in answers for call in genai.iterate_calls(answer)]
    reason = genai.get_finish_reason(span) or ("tool_calls" if calls else "stop")
    choice = {
        "index": 0,
        "message": _build_assistant_message("\n".join(texts), calls),
        "finish_reason": reason,
    }
    answer: dict[str, Any] = {
        "id": "chatcmpl-span",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [choice],
    }
    if (tokens := genai.get_tokens(span)) is not None:
        answer["usage"] = {
            "prompt_tokens": tokens.input,
            "completion_tokens": tokens.output,
            "total_tokens": tokens.total,
            "prompt_tokens_details": {"cached_tokens": tokens.cached},
        }
    request: dict[str, object] = {"model": model, "messages": messages}
    return LoggedCall("openai-chat", request, answer, is_rebuilt=True)


def _read_instructions(span: SpanLike) -> Iterator[dict[str, Any]]:
    found = genai.parse_attribute((span.attributes or {}).get(_INSTRUCTIONS))
    parts = [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []
    text = genai.get_message_text({"parts": parts})
    if text:
        yield {"role": "system", "content": text}


def _convert_messages(messages: Iterable[Message]) -> Iterator[dict[str, Any]]:
    for message in messages:
        text, calls = genai.get_message_text(message), list(genai.iterate_calls(message))
        for call_id, result in genai.iterate_results(message):
            yield {"role": "tool", "tool_call_id": call_id, "content": _write_text(result)}
        if message["role"] == "assistant":
            yield _build_assistant_message(text, calls)
        elif text:
            yield {"role": str(message["role"] or "user"), "content": text}


def _build_assistant_message(text: str, calls: Sequence[ToolCall]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_{place}",
                "type": "function",
                "function": {"name": call.name, "arguments": _write_text(call.arguments or {})},
            }
            for place, call in enumerate(calls, start=1)
        ]
    return message


def _write_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
