"""OpenAI's Responses: a steered call becomes an assistant message in its place in the output.

Shapes: https://platform.openai.com/docs/api-reference/responses and …/responses-streaming.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls
from ci_agent_eval.steering.proxy.sse import Json, parse_object, render_compact_json


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that the provider knows of and the client never saw; `message` is its result."""

    item: Json
    message: str

    @property
    def call_id(self) -> str:
        """What the call's output has to name."""
        return str(self.item["call_id"])

    @property
    def message_id(self) -> str:
        """The id of the message that the client got in place of the call."""
        return build_message_id(self.item)


@dataclass(slots=True)
class ResponseOutput:
    """What became of the calls of one response."""

    calls: ReviewedCalls
    unanswered: list[OpenCall] = field(default_factory=list)
    _told: dict[str, str | None] = field(default_factory=dict)

    def replaced(self, item: Json) -> Json | None:
        """Return what stands in place of a complete item; None: the item itself."""
        call, name = _parse_call(item), identify_item(item)
        if call is None:
            return None
        if name not in self._told:
            self._told[name] = self._asked(item, call)
        message = self._told[name]
        return None if message is None else _build_message(build_message_id(item), message)

    def may_be_steered(self, item: Json) -> bool:
        """Return whether an item has to be held until it is complete."""
        call = _parse_call(item)
        return call is not None and self.calls.concerns(call[0])

    def leave(self, item: Json) -> None:
        """Let a call through that was not complete when it could be held no longer."""
        self._told.setdefault(identify_item(item), None)

    def rewrite(self, response: Json) -> bool:
        """Put messages in place of the steered calls; return whether there were any."""
        output = response.get("output")
        if not isinstance(output, list):
            return False
        news = [self.replaced(item) if isinstance(item, dict) else None for item in output]
        response["output"] = [
            old if new is None else new for old, new in zip(output, news, strict=True)
        ]
        return any(new is not None for new in news)

    def _asked(self, item: Json, call: tuple[str, object]) -> str | None:
        message = self.calls.message(*call)
        if message is not None and isinstance(item.get("call_id"), str):
            self.unanswered.append(OpenCall(item, message))
        return message


def build_message_id(item: Json) -> str:
    """Return the id of the message in place of a call: the same wherever the call is announced."""
    return f"msg_{identify_item(item)}"


def identify_item(item: Json) -> str:
    """Return what names an item wherever it is announced."""
    return str(item.get("call_id") or item.get("id") or render_compact_json(item).decode())


def _parse_call(item: Json) -> tuple[str, object] | None:
    """Return tool and arguments of a call that the client would run.

    A call that a program at the provider made waits for its result, and what runs in the
    provider's container has run: both are left alone.
    """
    caller, place = item.get("caller"), item.get("environment")
    if isinstance(caller, dict) and caller.get("type") != "direct":
        return None
    if isinstance(place, dict) and place.get("type") == "container_reference":
        return None
    return _parse_named_call(item) or _parse_shell_call(item)


def _parse_named_call(item: Json) -> tuple[str, object] | None:
    name, arguments = item.get("name"), item.get("arguments")
    if not isinstance(name, str):
        return None
    if item.get("type") == "custom_tool_call":
        return name, item.get("input")
    if item.get("type") != "function_call":
        return None
    parsed = parse_object(arguments) if isinstance(arguments, str) else None
    return name, arguments if parsed is None else parsed


def _parse_shell_call(item: Json) -> tuple[str, object] | None:
    """Return the provider's own shell tools under the names that agents give theirs."""
    action = item.get("action")
    action = action if isinstance(action, dict) else {}
    if item.get("type") == "local_shell_call":
        return "local_shell", {"command": action.get("command")}
    if item.get("type") == "shell_call":
        return "shell", {"commands": action.get("commands")}
    return None


def _build_message(name: str, text: str) -> Json:
    return {
        "id": name,
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [build_text_part(text)],
    }


def build_text_part(text: str) -> Json:
    """Return a message's only part."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
