"""Responses that the provider stores with a call that its client never saw.

With `previous_response_id` or `conversation` the provider continues from its own history, and
refuses to without the outputs of all calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.steering.proxy.lru import LruCache
from ci_agent_eval.steering.proxy.responses import (
    list_conversations,
    list_input_items,
    list_unanswered,
)

MAX_REMEMBERED = 4096
"""Maximum number of remembered responses and conversations."""


@dataclass(frozen=True, slots=True)
class _StoredResponse:
    """Where the provider continues, and the outputs that it still needs."""

    id: str | None
    results: tuple[Json, ...]


@dataclass(slots=True)
class StoredResponses:
    """Remembers responses with held calls by their ids and conversations."""

    _stored: LruCache[_StoredResponse] = field(default_factory=lambda: LruCache(MAX_REMEMBERED))

    def remember(self, request: Json, ids: Sequence[str], results: Sequence[Json]) -> None:
        """Record the ids that a client got for one response, and the outputs that are missing.

        A stream has the id of the first answer; the provider continues from the last one.
        """
        for name in ids:
            self._stored.put(name, _StoredResponse(ids[-1], tuple(results)))
        for name in list_conversations(request) if results else ():
            self._stored.put(name, _StoredResponse(None, tuple(results)))

    def continue_request(self, request: Json) -> bool:
        """Add missing outputs to a request; return whether it changed.

        Several requests may continue from one response, so it stays remembered.
        """
        previous_id = request.get("previous_response_id")
        names = [previous_id] if isinstance(previous_id, str) else list_conversations(request)
        found = next((found for name in names if (found := self._stored.find(name))), None)
        if found is None:
            return False
        items = list_input_items(request)
        missing = list_unanswered(found.results, items)
        if missing:
            request["input"] = [*missing, *items]
        if found.id is not None:
            request["previous_response_id"] = found.id
        return bool(missing) or found.id not in (None, previous_id)

    def close_conversations(self, request: Json) -> None:
        """Forget the missing outputs of a conversation after the provider accepted a request."""
        for name in list_conversations(request):
            self._stored.forget(name)
