"""Answers that may hold calls: whose they are, their review, and what is remembered of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.answer_rewriter import AnswerRewriter, EventRewriter
from ci_agent_eval.steering.proxy.answer_sender import AnswerSender
from ci_agent_eval.steering.proxy.error_response import Api
from ci_agent_eval.steering.proxy.lru import LruCache
from ci_agent_eval.steering.proxy.open_calls import MAX_REMEMBERED, OpenCallStore
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls
from ci_agent_eval.steering.proxy.session_identity import SESSION_HEADER, identify_session
from ci_agent_eval.steering.proxy.session_review import ProxyReview
from ci_agent_eval.steering.proxy.sse import Json, parse_object, render_compact_json

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """How much of one request is held in memory, in bytes."""

    request: int = 64 * _MIB
    """Larger requests whose answers would be reviewed are refused."""
    response: int = 64 * _MIB
    """Larger answers pass without review."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """What a client asked, as the provider gets it; `request` is None where it is no JSON."""

    body: bytes
    request: Json | None


@dataclass(frozen=True, slots=True)
class AnswerReviewer:
    """Reviews answers, and remembers which sessions and open calls later requests go on from."""

    review: ProxyReview
    session_header: str = SESSION_HEADER
    limits: SizeLimits = field(default_factory=SizeLimits)
    _chained: LruCache[str] = field(default_factory=lambda: LruCache(MAX_REMEMBERED))
    _open_calls: OpenCallStore = field(default_factory=OpenCallStore)

    def asked(self, api: Api, body: bytes) -> PreparedRequest:
        """Return what the provider gets: the same bytes, unless it waits for calls' results."""
        request = parse_object(body)
        if request is not None and api == "responses" and self._open_calls.answer(request):
            body = render_compact_json(request)
        return PreparedRequest(body, request)

    async def send_answer(
        self, out: AnswerSender, api: Api, headers: Mapping[str, str], request: Json | None
    ) -> None:
        """Send an answer on, with messages in place of the calls that are steered.

        A request that is not JSON (some clients compress theirs) names no conversation, and
        its calls would be held back each time: without a header its answer passes.
        """
        if request is None and self.session_header.lower() not in headers:
            await out.passed()
            return
        asked = request or {}
        session = identify_session(
            headers, asked, header=self.session_header, chained=self._chained.find
        )
        answer = AnswerRewriter(api, ReviewedCalls(self.review.gate(session)))
        self._open_calls.answered(asked)
        await self._sent(out, answer, lambda: self._remember(asked, answer, session))

    def _remember(self, request: Json, answer: AnswerRewriter, session: str | None) -> None:
        if answer.response_id is not None and session is not None:
            self._chained.put(answer.response_id, session)
        self._open_calls.remember(request, answer.response_id, answer.take_open_calls())

    async def _sent(
        self, out: AnswerSender, answer: AnswerRewriter, remember: Callable[[], None]
    ) -> None:
        """Send an answer; `remember` is called before the client has what it may refer to."""
        readable = out.is_readable
        if out.kind == "text/event-stream" and readable:
            events = EventRewriter(answer.stream(), self.limits.response)
            await out.send_events(events, remember)
            _log_unreviewed(events.given_up)
        elif out.kind.endswith("json") and readable:
            rewritten = await self._whole(out, answer)
            remember()
            await (out.passed() if rewritten is None else out.replaced(rewritten))
        else:
            _log_unreviewed(None if readable else "its content coding is unknown here")
            await out.passed()

    async def _whole(self, out: AnswerSender, answer: AnswerRewriter) -> bytes | None:
        """Return what a whole answer becomes; None where it stays as it is."""
        body = await out.whole(self.limits.response)
        if body is None:
            _log_unreviewed(f"it is larger than {self.limits.response} bytes")
            return None
        rewritten = answer.rewrite(body)
        _log_unreviewed(answer.given_up)
        return rewritten


def _log_unreviewed(why: str | None) -> None:
    if why is not None:
        logger.warning("an answer passed without review: %s", why)
