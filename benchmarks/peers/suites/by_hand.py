"""An agent's loop written by hand over httpx2: what PydanticAI does here, and nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import httpx2
from work import AT_ONCE, INSTRUCTIONS, MODEL, URL, echo

TOOL = {
    "type": "function",
    "function": {
        "name": "echo",
        "description": "Return the text.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
            "additionalProperties": False,
        },
    },
}


@dataclass
class Answer:
    """What the loop came to."""

    text: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)
    """Of tools: `name`, `arguments` and `result`."""
    input_tokens: int = 0
    output_tokens: int = 0


class Loop:
    """The agent; one client with one pool of connections."""

    def __init__(self) -> None:
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=AT_ONCE)
        headers = {"authorization": "Bearer no-key"}
        self.client = httpx2.AsyncClient(limits=limits, timeout=60, headers=headers)

    async def answer(self, prompt: str) -> Answer:
        """Ask the model and call its tools until it answers."""
        answer = Answer()
        messages: list[dict[str, Any]] = [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": prompt},
        ]
        while not answer.text:
            message = await self._complete(messages, answer)
            messages.append(message)
            calls = message.get("tool_calls", ())
            messages += [await self._called(call, answer) for call in calls]
            answer.text = message["content"] or ""
        return answer

    async def _complete(self, messages: list[dict[str, Any]], answer: Answer) -> dict[str, Any]:
        body = {"model": MODEL, "messages": messages, "tools": [TOOL]}
        response = await self.client.post(f"{URL}/chat/completions", json=body)
        response.raise_for_status()
        completion = response.json()
        answer.input_tokens += completion["usage"]["prompt_tokens"]
        answer.output_tokens += completion["usage"]["completion_tokens"]
        message: dict[str, Any] = completion["choices"][0]["message"]
        return message

    async def _called(self, call: dict[str, Any], answer: Answer) -> dict[str, Any]:
        arguments = json.loads(call["function"]["arguments"])
        result = await echo(**arguments)
        name = call["function"]["name"]
        answer.calls.append({"name": name, "arguments": arguments, "result": result})
        return {"role": "tool", "tool_call_id": call["id"], "content": result}
