"""Calls that a provider of Responses knows of and its client never saw: they get their results.

With `previous_response_id` or `conversation` the provider keeps the history. It holds the call,
and refuses to go on without its output; the client has only the message. And where the client
keeps it, reasoning that comes back has to be followed by the very item that followed it then.
So the provider is told what happened: the call as it made it, and the message as its output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.lru import LruCache
from ci_agent_eval.steering.proxy.responses import OpenCall
from ci_agent_eval.steering.proxy.sse import Json, render_compact_json

MAX_REMEMBERED = 4096
"""How many responses, and as many conversations, are remembered."""


@dataclass(slots=True)
class OpenCallStore:
    """Remembers the steered calls of responses and of conversations."""

    _open: LruCache[tuple[OpenCall, ...]] = field(default_factory=lambda: LruCache(MAX_REMEMBERED))
    _stand_ins: LruCache[OpenCall] = field(default_factory=lambda: LruCache(MAX_REMEMBERED))

    def remember(self, request: Json, response_id: str | None, calls: Sequence[OpenCall]) -> None:
        """Note what was steered in the response to `request`."""
        if not calls:
            return
        named = [] if response_id is None else [response_id]
        for key in (*named, *_get_conversations(request)):
            self._open.put(key, (*(self._open.find(key) or ()), *calls))
        for call in calls:
            self._stand_ins.put(call.message_id, call)

    def answer(self, request: Json) -> bool:
        """Put calls and their results into a request; return whether there were any.

        Several requests may go on from one response, so it is not forgotten.
        """
        before = request.get("previous_response_id")
        keys = [before] if isinstance(before, str) else _get_conversations(request)
        waiting = [call for key in keys for call in self._open.find(key) or ()]
        given = _list_input_items(request.get("input"))
        entered = [item for each in given for item in self._restored(each)]
        answered = {_get_answered_id(item) for item in entered}
        missing = [call for call in waiting if call.call_id not in answered]
        if not missing and len(entered) == len(given):
            return False
        request["input"] = [*map(_build_result, missing), *entered]
        return True

    def answered(self, request: Json) -> None:
        """Note that the provider has taken a request: its conversation has no open calls."""
        for key in _get_conversations(request):
            self._open.forget(key)

    def _restored(self, item: object) -> tuple[object, ...]:
        """Return the call and its result, where an item is a message of ours."""
        name = item.get("id") if isinstance(item, dict) else None
        call = self._stand_ins.find(name) if isinstance(name, str) else None
        return (item,) if call is None else (call.item, _build_result(call))


def _get_answered_id(item: object) -> object:
    """Return the id of the call that an item is the output of."""
    if not isinstance(item, dict) or not str(item.get("type")).endswith("_output"):
        return None
    return item.get("call_id", item.get("id"))


def _get_conversations(request: Json) -> list[str]:
    value = request.get("conversation")
    value = value.get("id") if isinstance(value, dict) else value
    return [value] if isinstance(value, str) and value else []


def _list_input_items(entered: object) -> list[object]:
    if isinstance(entered, str):
        return [{"type": "message", "role": "user", "content": entered}]
    return list(entered) if isinstance(entered, list) else []


def _build_result(call: OpenCall) -> Mapping[str, object]:
    """Return the item that is this call's output; as if it had failed, where there is a code."""
    kind = call.item["type"]
    if kind == "local_shell_call":
        told = {"output": call.message, "metadata": {"exit_code": 1}}
        return _build_output(call, id=call.call_id, output=render_compact_json(told).decode())
    if kind == "shell_call":
        outcome = {"type": "exit", "exit_code": 1}
        parts = [{"stdout": "", "stderr": call.message, "outcome": outcome}]
        return _build_output(call, call_id=call.call_id, output=parts)
    return _build_output(call, call_id=call.call_id, output=call.message)


def _build_output(call: OpenCall, **fields: object) -> Mapping[str, object]:
    return {"type": f"{call.item['type']}_output", **fields}
