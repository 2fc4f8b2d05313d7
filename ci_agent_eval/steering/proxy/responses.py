"""OpenAI's Responses: replaces steered calls in the output with assistant messages.

Shapes: https://platform.openai.com/docs/api-reference/responses and …/responses-streaming.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json, render_compact_json
from ci_agent_eval.model_traffic.formats.response_items import parse_named_call, parse_shell_call
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A steered call that the client never saw; `message` is its result."""

    item: Json
    message: str

    @property
    def call_id(self) -> str:
        """The id that the call's output refers to."""
        return str(self.item["call_id"])

    @property
    def message_id(self) -> str:
        """The id of the message that replaced the call."""
        return build_message_id(self.item)


@dataclass(slots=True)
class ResponseOutput:
    """Rewrites the output items of one response."""

    calls: ReviewedCalls
    open_calls: list[OpenCall] = field(default_factory=list)
    _messages: dict[str, str | None] = field(default_factory=dict)

    def get_replacement(self, item: Json) -> Json | None:
        """Return the replacement of a complete item; None if it is unchanged."""
        call, name = _parse_call(item), identify_item(item)
        if call is None:
            return None
        if name not in self._messages:
            self._messages[name] = self._review_item(item, call)
        message = self._messages[name]
        return None if message is None else _build_message(build_message_id(item), message)

    def may_be_steered(self, item: Json) -> bool:
        """Return whether an item must be held until it is complete."""
        call = _parse_call(item)
        return call is not None and self.calls.is_steerable(call[0])

    def pass_item(self, item: Json) -> None:
        """Let an incomplete call through."""
        self._messages.setdefault(identify_item(item), None)

    def rewrite(self, response: Json) -> bool:
        """Replace the steered calls of a response; return whether there were any."""
        output = response.get("output")
        if not isinstance(output, list):
            return False
        replacements = [
            self.get_replacement(item) if isinstance(item, dict) else None for item in output
        ]
        response["output"] = [
            item if replacement is None else replacement
            for item, replacement in zip(output, replacements, strict=True)
        ]
        return any(replacement is not None for replacement in replacements)

    def _review_item(self, item: Json, call: tuple[str, object]) -> str | None:
        message = self.calls.get_message(*call)
        if message is not None and isinstance(item.get("call_id"), str):
            self.open_calls.append(OpenCall(item, message))
        return message


def build_message_id(item: Json) -> str:
    """Return the id of the message that replaces a call, the same in all events."""
    return f"msg_{identify_item(item)}"


def identify_item(item: Json) -> str:
    """Return an identifier of an item, the same in all events."""
    return str(item.get("call_id") or item.get("id") or render_compact_json(item).decode())


def _parse_call(item: Json) -> tuple[str, object] | None:
    """Return tool and arguments of a call for the client; None for other items.

    Calls from code at the provider, which waits for results, and calls that ran in the
    provider's container are not reviewed.
    """
    caller, environment = item.get("caller"), item.get("environment")
    if isinstance(caller, dict) and caller.get("type") != "direct":
        return None
    if isinstance(environment, dict) and environment.get("type") == "container_reference":
        return None
    return parse_named_call(item) or parse_shell_call(item)


def _build_message(name: str, text: str) -> Json:
    return {
        "id": name,
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [build_text_part(text)],
    }


def build_text_part(text: str) -> Json:
    """Build the only part of a message."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
