"""Answers that may hold calls: whose they are, their review, and what is remembered of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.steering.proxy.calls import Calls
from ci_agent_eval.steering.proxy.complaints import Api
from ci_agent_eval.steering.proxy.conversation import SESSION_HEADER, session_of
from ci_agent_eval.steering.proxy.lru import Recent
from ci_agent_eval.steering.proxy.open_calls import REMEMBERED, OpenCalls
from ci_agent_eval.steering.proxy.outbound import Outbound
from ci_agent_eval.steering.proxy.reviewing import Review
from ci_agent_eval.steering.proxy.rewriting import Answer, Events
from ci_agent_eval.steering.proxy.sse import Json, parse_object, render_json

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one request is held in memory, in bytes."""

    request: int = 64 * _MIB
    """Larger requests whose answers would be reviewed are refused."""
    response: int = 64 * _MIB
    """Larger answers pass without review."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asked, as the provider gets it; `request` is None where it is no JSON."""

    body: bytes
    request: Json | None


@dataclass(frozen=True, slots=True)
class Answering:
    """Reviews answers, and remembers which sessions and open calls later requests go on from."""

    review: Review
    session_header: str = SESSION_HEADER
    limits: Limits = field(default_factory=Limits)
    _chained: Recent[str] = field(default_factory=lambda: Recent(REMEMBERED))
    _open_calls: OpenCalls = field(default_factory=OpenCalls)

    def asked(self, api: Api, body: bytes) -> Asked:
        """Return what the provider gets: the same bytes, unless it waits for calls' results."""
        request = parse_object(body)
        if request is not None and api == "responses" and self._open_calls.answer(request):
            body = render_json(request)
        return Asked(body, request)

    async def hand_on(
        self, out: Outbound, api: Api, headers: Mapping[str, str], request: Json | None
    ) -> None:
        """Send an answer on, with messages in place of the calls that are steered.

        A request that is not JSON (some clients compress theirs) names no conversation, and
        its calls would be held back each time: without a header its answer passes.
        """
        if request is None and self.session_header.lower() not in headers:
            await out.passed()
            return
        asked = request or {}
        session = session_of(headers, asked, header=self.session_header, chained=self._chained.find)
        answer = Answer(api, Calls(self.review.gate(session)))
        self._open_calls.answered(asked)
        await self._sent(out, answer, lambda: self._remember(asked, answer, session))

    def _remember(self, request: Json, answer: Answer, session: str | None) -> None:
        if answer.response_id is not None and session is not None:
            self._chained.put(answer.response_id, session)
        self._open_calls.remember(request, answer.response_id, answer.taken())

    async def _sent(self, out: Outbound, answer: Answer, remember: Callable[[], None]) -> None:
        """Send an answer; `remember` is called before the client has what it may refer to."""
        readable = out.is_readable
        if out.kind == "text/event-stream" and readable:
            events = Events(answer.stream(), self.limits.response)
            await out.streamed(events, remember)
            _say_unreviewed(events.given_up)
        elif out.kind.endswith("json") and readable:
            rewritten = await self._whole(out, answer)
            remember()
            await (out.passed() if rewritten is None else out.replaced(rewritten))
        else:
            _say_unreviewed(None if readable else "its content coding is unknown here")
            await out.passed()

    async def _whole(self, out: Outbound, answer: Answer) -> bytes | None:
        """Return what a whole answer becomes; None where it stays as it is."""
        body = await out.whole(self.limits.response)
        if body is None:
            _say_unreviewed(f"it is larger than {self.limits.response} bytes")
            return None
        rewritten = answer.rewrite(body)
        _say_unreviewed(answer.given_up)
        return rewritten


def _say_unreviewed(why: str | None) -> None:
    if why is not None:
        logger.warning("an answer passed without review: %s", why)
