"""OpenAI's Chat Completions: removes steered calls and appends their messages to the content.

Shapes: https://platform.openai.com/docs/api-reference/chat and …/chat-streaming.
"""

from __future__ import annotations

from ci_agent_eval.model_traffic.formats.chat_calls import parse_call_entry, parse_function_call
from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls, append_message

CALL_FINISH_REASONS = ("tool_calls", "function_call")
"""The finish reasons of choices with calls."""


def rewrite_completion(body: Json, calls: ReviewedCalls) -> bool:
    """Replace the steered calls of a completion; return whether there were any."""
    choices = body.get("choices")
    if not isinstance(choices, list):
        return False
    return sum(_rewrite_choice(choice, calls) for choice in choices) > 0


def _rewrite_choice(choice: object, calls: ReviewedCalls) -> bool:
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return False
    replacements = [*_rewrite_calls(message, calls), *_rewrite_function(message, calls)]
    for text in dict.fromkeys(replacements):
        message["content"] = _append_text(message.get("content"), text)
    if replacements and not message.get("tool_calls") and not message.get("function_call"):
        end_turn(choice)
    return bool(replacements)


def end_turn(choice: Json) -> None:
    """Change a finish reason for calls to `stop`."""
    if choice.get("finish_reason") in CALL_FINISH_REASONS:
        choice["finish_reason"] = "stop"


def _append_text(content: object, text: str) -> object:
    """Append a text to the content, which is a list of parts with some providers."""
    if isinstance(content, list):
        return [*content, {"type": "text", "text": text}]
    return append_message(content, text)


def _rewrite_calls(message: Json, calls: ReviewedCalls) -> list[str]:
    entries = message.get("tool_calls")
    if not isinstance(entries, list):
        return []
    replacements = [_get_entry_message(entry, calls) for entry in entries]
    texts = [text for text in replacements if text is not None]
    message["tool_calls"] = [
        e for e, text in zip(entries, replacements, strict=True) if text is None
    ]
    if texts and not message["tool_calls"]:
        del message["tool_calls"]
    return texts


def _get_entry_message(entry: object, calls: ReviewedCalls) -> str | None:
    call = parse_call_entry(entry) if isinstance(entry, dict) else None
    return None if call is None else calls.get_message(*call)


def _rewrite_function(message: Json, calls: ReviewedCalls) -> list[str]:
    """Remove a steered `function_call`, which older models make; return its message."""
    function = message.get("function_call")
    call = parse_function_call(function) if isinstance(function, dict) else None
    text = None if call is None else calls.get_message(*call)
    if text is None:
        return []
    del message["function_call"]
    return [text]
