"""OpenAI's other API, the responses: its requests as chat messages, its answers from a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from tests.model_server.script import Step, tool_calls


def as_messages(given: str | Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the items of a request's `input` as chat messages, one for each turn of the model."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    messages: list[dict[str, Any]] = []
    for role, items in groupby(given, key=_role):
        messages += _messages(role, list(items))
    return messages


def _role(item: Mapping[str, Any]) -> str:
    kinds = {"function_call": "assistant", "function_call_output": "tool"}
    return kinds.get(str(item.get("type")), str(item.get("role", "assistant")))


def _messages(role: str, items: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    if role == "assistant":
        yield {"role": role}
        return
    for item in items:
        yield {"role": role, "content": item.get("output") if role == "tool" else item["content"]}


def response(step: Step, model: str, turn: int) -> dict[str, Any]:
    """Return the response object for a step, in the form of OpenAI's API reference."""
    return {
        "id": f"resp_{turn}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "output": [*_message(step, turn), *_calls(step, turn)],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        **({"usage": _usage(step.usage)} if step.usage is not None else {}),
    }


def _message(step: Step, turn: int) -> Iterator[dict[str, Any]]:
    if step.text is None:
        return
    part = {"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}
    yield {
        "id": f"msg_{turn}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _calls(step: Step, turn: int) -> Iterator[dict[str, Any]]:
    for number, call in enumerate(tool_calls(step, turn), 1):
        yield {
            "id": f"fc_{turn}_{number}",
            "type": "function_call",
            "status": "completed",
            "call_id": call["id"],
            **call["function"],
        }


def _usage(usage: Mapping[str, int]) -> dict[str, Any]:
    taken, given = usage.get("input", 0), usage.get("output", 0)
    return {
        "input_tokens": taken,
        "input_tokens_details": {"cached_tokens": usage.get("cached", 0)},
        "output_tokens": given,
        "output_tokens_details": {"reasoning_tokens": usage.get("reasoning", 0)},
        "total_tokens": taken + given,
    }
