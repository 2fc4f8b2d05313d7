"""What the server answers: scripts of steps, chosen by the messages of a request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One answer, or one fault. `{prompt}` and `{tool}` in texts and arguments are filled in."""

    text: str | None = None
    tool_calls: Sequence[Mapping[str, Any]] = ()
    """`{"name": ..., "arguments": {...} or raw text, "id": optional}`; several are parallel."""
    refusal: str | None = None
    status: int = 200
    """429 or 5xx or any other: an error in place of an answer."""
    code: str | None = None
    """The error's `code` in OpenAI's error object."""
    retry_after: str | None = None
    hang: bool = False
    """Answer only when the server is told to, or the client has gone."""
    break_after: int | None = None
    """The number of a stream's events after which it hangs, and ends when the server is told to."""
    body: str | bytes | None = None
    """Raw bytes in place of a completion: malformed JSON, an empty object."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of a raw answer or an error."""
    chunks: Sequence[str | bytes] = ()
    """The pieces of a raw body, sent one by one."""
    hang_after: int | None = None
    """The number of chunks after which the server waits until it is told to go on."""
    drop_after: int | None = None
    """The number of chunks after which the connection is closed, in the middle of the body."""
    delay_ms: float = 0
    usage: Mapping[str, int] | None = field(
        default_factory=lambda: {"input": 100, "output": 20, "cached": 0}
    )
    """None: the answer says nothing about usage."""
    finish_reason: str | None = None

    @property
    def is_fault(self) -> bool:
        """Whether the client is expected to ask again."""
        is_raw = self.body is not None or bool(self.chunks)
        return self.status != 200 or self.hang or is_raw

    @classmethod
    def parse(cls, value: Any) -> Step:
        """Read a step from a text (an answer), a number (a status) or an object."""
        if isinstance(value, Step):
            return value
        if isinstance(value, str):
            return cls(text=value)
        if isinstance(value, int):
            return cls(status=value)
        return cls(**value)


def call(name: str, /, id: str | None = None, **arguments: Any) -> dict[str, Any]:  # noqa: A002
    """One tool call of a step."""
    return {"name": name, "arguments": arguments, **({"id": id} if id else {})}


class Script:
    """Scripts by conversation: the key is (a part of) the first user message, `*` any.

    A conversation's steps are in turns: faults, then the answer they delay. The turn
    follows from the assistant messages a request holds, the fault from how often the
    turn was asked for; a turn of faults only repeats its last one.
    """

    def __init__(self, scripts: Mapping[str, Sequence[Any]] | Sequence[Any]) -> None:
        named = scripts if isinstance(scripts, Mapping) else {"*": scripts}
        self._turns = {key: _turns([Step.parse(s) for s in steps]) for key, steps in named.items()}
        self._asked: Counter[tuple[str, str, int]] = Counter()

    def extend(self, other: Script) -> None:
        """Add the conversations of another script."""
        self._turns |= other._turns

    def step(self, messages: Sequence[Mapping[str, Any]]) -> Step:
        """Return the step that answers these messages, filled in."""
        prompts = [text_of(m) for m in messages if m["role"] == "user"] or [""]
        key = self._key(prompts)
        number = sum(1 for m in messages if m["role"] == "assistant")
        if key is None or number >= len(self._turns[key]):
            return Step(status=418, code="no_step_in_the_script")
        self._asked[key, prompts[0], number] += 1
        turn = self._turns[key][number]
        step = turn[min(self._asked[key, prompts[0], number], len(turn)) - 1]
        tools = [text_of(m) for m in messages if m["role"] == "tool"]
        return _filled(step, {"{prompt}": prompts[-1], "{tool}": tools[-1] if tools else ""})

    def _key(self, prompts: Sequence[str]) -> str | None:
        found = [key for key in self._turns if any(key in prompt for prompt in prompts)]
        return max(found, key=len) if found else ("*" if "*" in self._turns else None)


def text_of(message: Mapping[str, Any]) -> str:
    """Return a message's text, whichever way it is written."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _turns(steps: Sequence[Step]) -> list[list[Step]]:
    turns: list[list[Step]] = [[]]
    for step in steps:
        turns[-1].append(step)
        if not step.is_fault:
            turns.append([])
    return [turn for turn in turns if turn]


def _filled(step: Step, words: Mapping[str, str]) -> Step:
    def fill(value: Any) -> Any:
        if isinstance(value, str):
            for word, text in words.items():
                value = value.replace(word, text)
            return value
        if isinstance(value, Mapping):
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list | tuple) else value

    changed = {"text": fill(step.text), "tool_calls": fill(step.tool_calls)}
    return Step(**{**step.__dict__, **changed})


def completion(step: Step, model: str, turn: int) -> dict[str, Any]:
    """The completion object for a step, in the form of OpenAI's API reference."""
    calls = tool_calls(step, turn)
    message: dict[str, Any] = {"role": "assistant", "content": step.text, "refusal": step.refusal}
    message |= {"tool_calls": calls} if calls else {}
    reason = step.finish_reason or ("tool_calls" if calls else "stop")
    return {
        "id": f"chatcmpl-{turn}",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        **({"usage": _usage(step.usage)} if step.usage is not None else {}),
    }


def tool_calls(step: Step, turn: int) -> list[dict[str, Any]]:
    """Return the calls of a step as the chat completions write them."""
    return [_call(item, turn, n) for n, item in enumerate(step.tool_calls, 1)]


def _call(item: Mapping[str, Any], turn: int, number: int) -> dict[str, Any]:
    arguments = item.get("arguments", {})
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {
        "id": item.get("id", f"call_{turn}_{number}"),
        "type": "function",
        "function": {"name": item["name"], "arguments": raw},
    }


def _usage(usage: Mapping[str, int]) -> dict[str, Any]:
    taken, given = usage.get("input", 0), usage.get("output", 0)
    return {
        "prompt_tokens": taken,
        "completion_tokens": given,
        "total_tokens": taken + given,
        "prompt_tokens_details": {"cached_tokens": usage.get("cached", 0)},
    }
