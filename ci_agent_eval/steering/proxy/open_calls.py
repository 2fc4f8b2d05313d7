"""Results for steered calls that a provider of Responses knows and its client never saw.

With `previous_response_id` or `conversation` the provider stores the history, including the
call, and refuses to continue without its output; the client has only the message. If the client
stores the history, a reasoning item must be followed by the same item as before. So later
requests get the original call, with the message as its output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json, render_compact_json
from ci_agent_eval.steering.proxy.lru import LruCache
from ci_agent_eval.steering.proxy.responses import OpenCall

MAX_REMEMBERED = 4096
"""Maximum number of remembered responses and conversations."""


@dataclass(slots=True)
class OpenCallStore:
    """Remembers the steered calls of responses and conversations."""

    _open: LruCache[tuple[OpenCall, ...]] = field(default_factory=lambda: LruCache(MAX_REMEMBERED))
    _calls_by_message: LruCache[OpenCall] = field(default_factory=lambda: LruCache(MAX_REMEMBERED))

    def remember(self, request: Json, response_id: str | None, calls: Sequence[OpenCall]) -> None:
        """Record the steered calls of the response to `request`."""
        if not calls:
            return
        ids = [] if response_id is None else [response_id]
        for key in (*ids, *_get_conversations(request)):
            self._open.put(key, (*(self._open.find(key) or ()), *calls))
        for call in calls:
            self._calls_by_message.put(call.message_id, call)

    def add_missing_results(self, request: Json) -> bool:
        """Add missing calls and results to a request; return whether there were any.

        Keeps the calls of a response, because several requests may continue from it.
        """
        previous_id = request.get("previous_response_id")
        keys = [previous_id] if isinstance(previous_id, str) else _get_conversations(request)
        open_calls = [call for key in keys for call in self._open.find(key) or ()]
        original_items = _list_input_items(request.get("input"))
        items = [new for item in original_items for new in self._restore_call(item)]
        answered_ids = {_get_answered_id(item) for item in items}
        missing = [call for call in open_calls if call.call_id not in answered_ids]
        if not missing and len(items) == len(original_items):
            return False
        request["input"] = [*map(_build_result, missing), *items]
        return True

    def close_conversations(self, request: Json) -> None:
        """Remove the open calls of a request's conversation after the provider accepted it."""
        for key in _get_conversations(request):
            self._open.forget(key)

    def _restore_call(self, item: object) -> tuple[object, ...]:
        """Replace a message of the proxy with the original call and its result."""
        name = item.get("id") if isinstance(item, dict) else None
        call = self._calls_by_message.find(name) if isinstance(name, str) else None
        return (item,) if call is None else (call.item, _build_result(call))


def _get_answered_id(item: object) -> object:
    """Return the call id of an output item; None for other items."""
    if not isinstance(item, dict) or not str(item.get("type")).endswith("_output"):
        return None
    return item.get("call_id", item.get("id"))


def _get_conversations(request: Json) -> list[str]:
    value = request.get("conversation")
    value = value.get("id") if isinstance(value, dict) else value
    return [value] if isinstance(value, str) and value else []


def _list_input_items(items: object) -> list[object]:
    if isinstance(items, str):
        return [{"type": "message", "role": "user", "content": items}]
    return list(items) if isinstance(items, list) else []


def _build_result(call: OpenCall) -> Mapping[str, object]:
    """Build the output item of a call, with a failing exit code if its format has one."""
    kind = call.item["type"]
    if kind == "local_shell_call":
        output = {"output": call.message, "metadata": {"exit_code": 1}}
        return _build_output(call, id=call.call_id, output=render_compact_json(output).decode())
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        parts = [{"stdout": "", "stderr": call.message, "outcome": outcome}]
        return _build_output(call, call_id=call.call_id, output=parts)
    return _build_output(call, call_id=call.call_id, output=call.message)


def _build_output(call: OpenCall, **fields: object) -> Mapping[str, object]:
    return {"type": f"{call.item['type']}_output", **fields}
