"""Review of answers that may contain calls, with the memory of sessions and open calls."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json, parse_object, render_compact_json
from ci_agent_eval.model_traffic.forwarding.answer_sender import AnswerSender
from ci_agent_eval.steering.proxy.answer_rewriter import AnswerRewriter, EventRewriter
from ci_agent_eval.steering.proxy.error_response import Api
from ci_agent_eval.steering.proxy.lru import LruCache
from ci_agent_eval.steering.proxy.open_calls import MAX_REMEMBERED, OpenCallStore
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls
from ci_agent_eval.steering.proxy.session_identity import SESSION_HEADER, identify_session
from ci_agent_eval.steering.proxy.session_review import ProxyReview

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Maximum sizes held in memory for one request, in bytes."""

    request: int = 64 * _MIB
    """Larger requests to a reviewed API are refused."""
    response: int = 64 * _MIB
    """Larger answers pass without review."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request for the provider: its body, and the parsed JSON or None."""

    body: bytes
    request: Json | None


@dataclass(frozen=True, slots=True)
class AnswerReviewer:
    """Reviews answers, and remembers sessions and open calls for later requests."""

    review: ProxyReview
    session_header: str = SESSION_HEADER
    limits: SizeLimits = field(default_factory=SizeLimits)
    _sessions_by_response: LruCache[str] = field(default_factory=lambda: LruCache(MAX_REMEMBERED))
    _open_calls: OpenCallStore = field(default_factory=OpenCallStore)

    def prepare_request(self, api: Api, body: bytes) -> PreparedRequest:
        """Add missing results of steered calls to a request; otherwise keep its bytes."""
        request = parse_object(body)
        if (
            request is not None
            and api == "responses"
            and self._open_calls.add_missing_results(request)
        ):
            body = render_compact_json(request)
        return PreparedRequest(body, request)

    async def send_answer(
        self, out: AnswerSender, api: Api, headers: Mapping[str, str], request: Json | None
    ) -> None:
        """Send an answer to the client, with messages in place of steered calls.

        Without a session header, the answer to a request that is not JSON (some clients compress
        requests) is not reviewed: without a session its calls would be steered each time.
        """
        if request is None and self.session_header.lower() not in headers:
            await out.pass_through()
            return
        fields = request or {}
        session = identify_session(
            headers,
            fields,
            header=self.session_header,
            find_session=self._sessions_by_response.find,
        )
        answer = AnswerRewriter(api, ReviewedCalls(self.review.for_session(session)))
        self._open_calls.close_conversations(fields)
        await self._send_reviewed(out, answer, lambda: self._remember(fields, answer, session))

    def _remember(self, request: Json, answer: AnswerRewriter, session: str | None) -> None:
        if answer.response_id is not None and session is not None:
            self._sessions_by_response.put(answer.response_id, session)
        self._open_calls.remember(request, answer.response_id, answer.take_open_calls())

    async def _send_reviewed(
        self, out: AnswerSender, answer: AnswerRewriter, remember: Callable[[], None]
    ) -> None:
        """Send an answer; call `remember` before the client can refer to its content."""
        is_readable = out.is_readable
        if out.content_type == "text/event-stream" and is_readable:
            events = EventRewriter(answer.create_stream(), self.limits.response)
            await out.send_rewritten(RememberingRewriter(events, remember))
            _log_unreviewed(events.bypass_reason)
        elif out.content_type.endswith("json") and is_readable:
            rewritten = await self._rewrite_body(out, answer)
            remember()
            await (out.pass_through() if rewritten is None else out.send_body(rewritten))
        else:
            _log_unreviewed(None if is_readable else "its content coding is unknown here")
            await out.pass_through()

    async def _rewrite_body(self, out: AnswerSender, answer: AnswerRewriter) -> bytes | None:
        """Return the rewritten body of an answer; None if it is unchanged."""
        body = await out.read_body(self.limits.response)
        if body is None:
            _log_unreviewed(f"it is larger than {self.limits.response} bytes")
            return None
        rewritten = answer.rewrite(body)
        _log_unreviewed(answer.bypass_reason)
        return rewritten


@dataclass(frozen=True, slots=True)
class RememberingRewriter:
    """Calls `remember` before each part is sent, so that the client cannot refer to it earlier."""

    events: EventRewriter
    remember: Callable[[], None]

    def feed(self, chunk: bytes) -> bytes:
        """Rewrite the next bytes."""
        out = self.events.feed(chunk)
        self.remember()
        return out

    def finish(self) -> bytes:
        """Return the rewritten rest."""
        out = self.events.finish()
        self.remember()
        return out


def _log_unreviewed(reason: str | None) -> None:
    if reason is not None:
        logger.warning("an answer passed without review: %s", reason)
