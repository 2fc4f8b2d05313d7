"""The smallest requests and answers of the model APIs that a coding agent needs. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]

SHELL_TOOLS = (
    "Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command",
)  # fmt: skip
"""The shell tools of the supported agents."""


@dataclass(frozen=True, slots=True)
class ShellTool:
    """A shell tool that an agent offers, with the argument of its command."""

    name: str
    argument: str
    required: tuple[str, ...] = ()

    def build_arguments(self, command: str) -> Json:
        """Return the arguments of a call."""
        others: Json = {name: "run tests" for name in self.required if name != self.argument}
        if "is_background" in others:
            others["is_background"] = False
        return {**others, self.argument: command}


@dataclass(frozen=True, slots=True)
class ShellCall:
    """The call of a shell tool; the id is unique in its conversation."""

    id: str
    name: str
    arguments: Json


@dataclass(frozen=True, slots=True)
class Answer:
    """A text, or calls of a shell tool; the number of earlier results makes ids unique."""

    text: str
    calls: Sequence[ShellCall] = ()
    number: int = 0


def build_calls(tool: ShellTool, commands: Sequence[str], number: int) -> Answer:
    """Return the answer that runs the commands in parallel."""
    calls = [
        ShellCall(f"call_{number + at}", tool.name, tool.build_arguments(command))
        for at, command in enumerate(commands)
    ]
    return Answer("", calls, number)


@dataclass(frozen=True, slots=True)
class ModelFormat:
    """One API of models."""

    list_tools: Callable[[Json], Iterable[tuple[str, Json]]]
    """Yields names and JSON schemas of a request's tools."""
    list_results: Callable[[Json], Iterable[object]]
    """Yields the contents of a request's tool results."""
    render: Callable[[Answer], Json]
    list_events: Callable[[Answer], Iterable[Json]]
    last_line: str = ""

    def find_shell_tool(self, body: Json) -> ShellTool | None:
        """Return the shell tool that a request offers."""
        for name, schema in self.list_tools(body):
            if name in SHELL_TOOLS:
                properties = schema.get("properties", {})
                argument = "cmd" if "cmd" in properties else "command"
                return ShellTool(name, argument, tuple(schema.get("required", ())))
        return None

    def read_tool_results(self, body: Json) -> Sequence[str]:
        """Return the texts of a request's tool results, in order."""
        return [_read_text(each) for each in self.list_results(body)]

    def render_stream(self, answer: Answer) -> str:
        """Return the whole event stream of an answer."""
        lines = []
        for event in self.list_events(answer):
            name = f"event: {event['type']}\n" if "type" in event else ""
            lines.append(f"{name}data: {json.dumps(event)}\n\n")
        return "".join(lines) + self.last_line


def _read_text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_read_text(part) for part in content)
    if isinstance(content, dict):
        return _read_text(content.get("text", json.dumps(content)))
    return json.dumps(content)


def _select_items(items: object, **fields: str) -> Iterator[Json]:
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and all(item.get(k) == v for k, v in fields.items()):
            yield item


# Anthropic Messages


def _build_message(answer: Answer) -> Json:
    calls = [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
        for call in answer.calls
    ]
    return {
        "id": f"msg_{answer.number}", "type": "message", "role": "assistant", "model": "scripted",
        "content": calls or [{"type": "text", "text": answer.text}],
        "stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def _message_events(answer: Answer) -> Iterator[Json]:
    message = _build_message(answer)
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "tool_use":
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        else:
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _list_message_results(body: Json) -> Iterator[object]:
    for message in _select_items(body["messages"], role="user"):
        for block in _select_items(message["content"], type="tool_result"):
            yield block.get("content", "")


# OpenAI Chat Completions


def _build_completion(answer: Answer) -> Json:
    calls = [
        {
            "index": at,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments)},
        }
        for at, call in enumerate(answer.calls)
    ]
    message: Json = {"role": "assistant", "content": answer.text or None}
    message |= {"tool_calls": calls} if calls else {}
    reason = "tool_calls" if calls else "stop"
    return {
        "id": f"chatcmpl-{answer.number}", "object": "chat.completion", "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }  # fmt: skip


def _completion_events(answer: Answer) -> Iterator[Json]:
    whole = _build_completion(answer)
    (choice,) = whole.pop("choices")
    usage = whole.pop("usage")
    base = {**whole, "object": "chat.completion.chunk"}
    yield {**base, "choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]}
    yield {
        **base,
        "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}],
        "usage": usage,
    }


# OpenAI Responses


def _build_response(answer: Answer) -> Json:
    calls: list[Json] = [
        {
            "id": f"fc_{call.id}", "type": "function_call", "status": "completed",
            "call_id": call.id, "name": call.name, "arguments": json.dumps(call.arguments),
        }
        for call in answer.calls
    ]  # fmt: skip
    message = {
        "id": f"msg_{answer.number}", "type": "message", "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": answer.text, "annotations": []}],
    }  # fmt: skip
    usage = {
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 1,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    }  # fmt: skip
    return {
        "id": f"resp_{answer.number}", "object": "response", "created_at": 0,
        "status": "completed", "model": "scripted", "output": calls or [message], "usage": usage,
        "error": None,
    }  # fmt: skip


def _response_events(answer: Answer) -> Iterator[Json]:
    response = _build_response(answer)
    begun = {**response, "status": "in_progress", "output": []}
    yield {"type": "response.created", "response": begun}
    for index, item in enumerate(response["output"]):
        started = {**item, "status": "in_progress"}
        yield {"type": "response.output_item.added", "output_index": index, "item": started}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": response}


# Gemini


def _build_gemini_answer(answer: Answer) -> Json:
    calls: list[Json] = [
        {"functionCall": {"name": c.name, "args": c.arguments}} for c in answer.calls
    ]
    content = {"role": "model", "parts": calls or [{"text": answer.text}]}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": usage,
        "modelVersion": "scripted",
    }


def _list_gemini_results(body: Json) -> Iterator[object]:
    for content in _select_items(body.get("contents")):
        for part in _select_items(content.get("parts")):
            if "functionResponse" in part:
                response = part["functionResponse"].get("response", {})
                yield response.get("output", response.get("error", response))


def _list_gemini_tools(body: Json) -> Iterator[tuple[str, Json]]:
    for tool in _select_items(body.get("tools")):
        for each in _select_items(tool.get("functionDeclarations")):
            schema = each.get("parametersJsonSchema") or each.get("parameters") or {}
            yield each["name"], schema


def _list_anthropic_tools(body: Json) -> Iterator[tuple[str, Json]]:
    for tool in _select_items(body.get("tools")):
        yield tool.get("name", ""), tool.get("input_schema", {})


def _list_chat_tools(body: Json) -> Iterator[tuple[str, Json]]:
    for tool in _select_items(body.get("tools"), type="function"):
        yield tool["function"]["name"], tool["function"].get("parameters", {})


def _list_response_tools(body: Json) -> Iterator[tuple[str, Json]]:
    for tool in _select_items(body.get("tools"), type="function"):
        yield tool["name"], tool.get("parameters", {})


def _list_chat_results(body: Json) -> Iterator[object]:
    return (message["content"] for message in _select_items(body["messages"], role="tool"))


def _list_response_results(body: Json) -> Iterator[object]:
    return (item["output"] for item in _select_items(body["input"], type="function_call_output"))


def _gemini_events(answer: Answer) -> Iterator[Json]:
    yield _build_gemini_answer(answer)


_FORMATS: Mapping[str, ModelFormat] = {
    "/messages": ModelFormat(
        _list_anthropic_tools, _list_message_results, _build_message, _message_events
    ),
    "/chat/completions": ModelFormat(
        _list_chat_tools,
        _list_chat_results,
        _build_completion,
        _completion_events,
        last_line="data: [DONE]\n\n",
    ),
    "/responses": ModelFormat(
        _list_response_tools, _list_response_results, _build_response, _response_events
    ),
    ":generateContent": (
        gemini := ModelFormat(
            _list_gemini_tools, _list_gemini_results, _build_gemini_answer, _gemini_events
        )
    ),
    ":streamGenerateContent": gemini,
}


def find_format(path: str) -> ModelFormat | None:
    """Return the API that a request's path belongs to."""
    return next((found for end, found in _FORMATS.items() if path.endswith(end)), None)
