"""What the proxy remembers between requests: sessions, held calls and stored responses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.steering.proxy.dialect import Dialect
from ci_agent_eval.steering.proxy.held_exchange import HeldExchange
from ci_agent_eval.steering.proxy.held_history import HeldHistory
from ci_agent_eval.steering.proxy.lru import LruCache
from ci_agent_eval.steering.proxy.session_identity import SESSION_HEADER, identify_session
from ci_agent_eval.steering.proxy.stored_responses import MAX_REMEMBERED, StoredResponses


@dataclass(frozen=True, slots=True)
class ProxyMemory:
    """Identifies the session of a request, and restores the held calls in it."""

    session_header: str = SESSION_HEADER
    _sessions_by_response: LruCache[str] = field(default_factory=lambda: LruCache(MAX_REMEMBERED))
    _history: HeldHistory = field(default_factory=HeldHistory)
    _responses: StoredResponses = field(default_factory=StoredResponses)

    def identify(self, headers: Mapping[str, str], request: Json) -> str | None:
        """Return the session of a request; None if unknown."""
        return identify_session(
            headers,
            request,
            header=self.session_header,
            find_session=self._sessions_by_response.find,
        )

    def restore(self, dialect: Dialect, request: Json, session: str) -> bool:
        """Insert held calls and their results into a request; return whether there were any."""
        is_restored = dialect.restore(request, partial(self._history.find, session))
        return self._responses.continue_request(request) or is_restored

    def remember(self, session: str, number: int, exchange: HeldExchange, merged: Json) -> None:
        """Record the held calls behind an answer; `number` counts the answers before it."""
        held = exchange.answers
        if held:
            anchors = exchange.dialect.list_anchors(merged, number)
            self._history.remember(session, anchors, held)
        self.remember_responses(session, exchange)

    def remember_responses(self, session: str, exchange: HeldExchange) -> None:
        """Record the ids of the responses that the client may refer to."""
        for response_id in exchange.response_ids:
            self._sessions_by_response.put(response_id, session)
        if exchange.answers:
            last = exchange.answers[-1]
            missing = last.results if last.has_client_calls else []
            self._responses.remember(exchange.request, exchange.response_ids, missing)

    def close_conversations(self, request: Json) -> None:
        """Forget the missing results of a conversation after the provider accepted a request."""
        self._responses.close_conversations(request)

    def open_conversation(self, exchange: HeldExchange, results: list[Json]) -> None:
        """Record results that a conversation at the provider needs if asking again fails."""
        self._responses.remember(exchange.request, [], results)
