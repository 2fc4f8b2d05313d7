"""Answers of model providers, in the documented shape of each API.

Sources, as of the client libraries openai 3.52 and anthropic 2.11, whose types are generated from
the providers' descriptions, and of the pages

- https://platform.openai.com/docs/api-reference/chat/object and …/chat-streaming
- https://platform.openai.com/docs/api-reference/responses/object and …/responses-streaming
- https://docs.anthropic.com/en/api/messages and …/messages-streaming

A call is `(tool, arguments)`; arguments are an object, or text that is sent as it is.
"""

from __future__ import annotations

import json

from tests.model_server import streams
from tests.model_server.streams import data, halves


def bash(command):
    return ("bash", {"command": command})


def text_of(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


# Chat Completions


CHAT_USAGE = {"prompt_tokens": 82, "completion_tokens": 17, "total_tokens": 99}


def chat_call(at, call):
    function = {"name": call[0], "arguments": text_of(call[1])}
    return {"id": f"call_{at}", "type": "function", "function": function}


def chat_body(*calls, text=None, finish=None):
    message = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
    if calls:
        message["tool_calls"] = [chat_call(at, call) for at, call in enumerate(calls)]
    reason = finish or ("tool_calls" if calls else "stop")
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1741569952,
        "model": "gpt-5",
        "choices": [choice],
        "usage": CHAT_USAGE,
        "system_fingerprint": None,
    }


def chat_chunk(delta, finish=None, at=0):
    choice = {"index": at, "delta": delta, "logprobs": None, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1741569952}
    return data({**head, "model": "gpt-5", "choices": [choice], "obfuscation": "x7"})


def chat_events(*calls, text=None, finish=None):
    return list(streams.chat_events(chat_body(*calls, text=text, finish=finish), with_usage=True))


def chat_call_events(at, call):
    begun = chat_call(at, (call[0], ""))
    pieces = [{"index": at, "function": {"arguments": part}} for part in halves(text_of(call[1]))]
    return [chat_chunk({"tool_calls": [piece]}) for piece in [{"index": at, **begun}, *pieces]]


# Responses


def response_item(at, call):
    return {
        "id": f"fc_{at}",
        "type": "function_call",
        "status": "completed",
        "arguments": text_of(call[1]),
        "call_id": f"call_{at}",
        "name": call[0],
    }


def response_message(text):
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "content": [part],
        "role": "assistant",
    }


def response_body(*calls, text=None, items=(), name="resp_1"):
    output = [response_message(text)] if text else []
    output += [response_item(at, call) for at, call in enumerate(calls)]
    return {
        "id": name,
        "object": "response",
        "created_at": 1741476542,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-5",
        "output": [*output, *items],
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": 36,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 87,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 123,
        },
    }


def response_events(*calls, text=None, items=(), name="resp_1"):
    return list(streams.response_events(response_body(*calls, text=text, items=items, name=name)))


# Messages


def message_body(*calls, text=None, stop=None):
    content = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": f"toolu_{at}", "name": tool, "input": arguments}
        for at, (tool, arguments) in enumerate(calls)
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": content,
        "stop_reason": stop or ("tool_use" if calls else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 472, "output_tokens": 89},
    }


def message_events(*calls, text=None, stop=None):
    return list(streams.message_events(message_body(*calls, text=text, stop=stop)))
