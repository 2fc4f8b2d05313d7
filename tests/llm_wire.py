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


def bash(command):
    return ("bash", {"command": command})


def text_of(arguments):
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def halves(text):
    """Cut a text in two, as a model's stream would."""
    middle = len(text) // 2
    return [part for part in (text[:middle], text[middle:]) if part]


def data(payload, name=None):
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {json.dumps(payload)}\n\n".encode()


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
    return _chunk([choice])


def _chunk(choices, **more):
    return data(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1741569952,
            "model": "gpt-5",
            "system_fingerprint": "fp_1",
            "choices": choices,
            "obfuscation": "x7",
            **more,
        }
    )


def chat_events(*calls, text=None, finish=None):
    events = [chat_chunk({"role": "assistant", "content": None if calls and not text else ""})]
    events += [chat_chunk({"content": part}) for part in halves(text or "")]
    for at, call in enumerate(calls):
        events += chat_call_events(at, call)
    events.append(chat_chunk({}, finish or ("tool_calls" if calls else "stop")))
    return [*events, _chunk([], usage=CHAT_USAGE), b"data: [DONE]\n\n"]


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


def response_body(*calls, text=None, items=(), status="completed", name="resp_1"):
    output = [response_message(text)] if text else []
    output += [response_item(at, call) for at, call in enumerate(calls)]
    return {
        "id": name,
        "object": "response",
        "created_at": 1741476542,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "gpt-5",
        "output": [*output, *items] if status == "completed" else [],
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
        }
        if status == "completed"
        else None,
    }


def response_events(*calls, text=None, items=(), name="resp_1"):
    whole = response_body(*calls, text=text, items=items, name=name)
    begun = response_body(status="in_progress", name=name)
    payloads = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    for at, item in enumerate(whole["output"]):
        payloads += _item_payloads(at, item)
    payloads.append({"type": "response.completed", "response": whole})
    return [
        data({**payload, "sequence_number": number}, payload["type"])
        for number, payload in enumerate(payloads)
    ]


def _item_payloads(at, item):
    begun = {**item, "status": "in_progress"}
    place = {"item_id": item["id"], "output_index": at}
    if item["type"] == "message":
        begun["content"] = []
        between = _text_payloads(place, item["content"][0])
    elif item["type"] == "function_call":
        begun["arguments"] = ""
        kind = "response.function_call_arguments"
        between = [
            {"type": f"{kind}.delta", **place, "delta": part} for part in halves(item["arguments"])
        ]
        between.append({"type": f"{kind}.done", **place, "arguments": item["arguments"]})
    else:
        between = []
    return [
        {"type": "response.output_item.added", "output_index": at, "item": begun},
        *between,
        {"type": "response.output_item.done", "output_index": at, "item": item},
    ]


def _text_payloads(place, part):
    place = {**place, "content_index": 0}
    return [
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *(
            {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            for piece in halves(part["text"])
        ),
        {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
    ]


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
    whole = message_body(*calls, text=text, stop=stop)
    begun = {**whole, "content": [], "stop_reason": None}
    payloads = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for at, block in enumerate(whole["content"]):
        payloads += _block_payloads(at, block)
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    payloads.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 89}})
    payloads.append({"type": "message_stop"})
    return [data(payload, payload["type"]) for payload in payloads]


def _block_payloads(at, block):
    if block["type"] == "text":
        begun = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": part} for part in halves(block["text"])]
    else:
        begun = {**block, "input": {}}
        parts = ["", *halves(text_of(block["input"]))]
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in parts]
    return [
        {"type": "content_block_start", "index": at, "content_block": begun},
        *({"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": at},
    ]
