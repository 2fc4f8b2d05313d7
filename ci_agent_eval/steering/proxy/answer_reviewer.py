"""Review of answers: held calls are answered by the proxy, which asks the model again."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from ci_agent_eval.model_traffic.formats.json_values import Json, parse_object, render_compact_json
from ci_agent_eval.model_traffic.forwarding.answer_sender import AnswerSender
from ci_agent_eval.model_traffic.forwarding.upstream import ProviderError
from ci_agent_eval.steering.proxy.dialect import Dialect
from ci_agent_eval.steering.proxy.held_exchange import Continuation, HeldExchange
from ci_agent_eval.steering.proxy.proxy_memory import ProxyMemory
from ci_agent_eval.steering.proxy.reviewed_calls import ReviewedCalls
from ci_agent_eval.steering.proxy.session_review import ProxyReview
from ci_agent_eval.steering.proxy.streamed_answer import StreamedAnswer, review_calls

logger = logging.getLogger(__name__)

_MIB = 1024 * 1024
_EVENT_STREAM = "text/event-stream"

AskModel = Callable[[bytes], Awaitable[AnswerSender | None]]
"""Sends another body in place of the client's; returns None, with a log line, if that failed."""


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Maximum sizes held in memory for one request, in bytes."""

    request: int = 64 * _MIB
    """Larger requests to a reviewed API are refused."""
    response: int = 64 * _MIB
    """Larger answers pass without review."""


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request for the provider."""

    body: bytes
    session: str | None
    exchange: HeldExchange | None
    """None: the request is no JSON object, so that its answer is not reviewed."""


@dataclass(frozen=True, slots=True)
class AnswerReviewer:
    """Reviews answers, and remembers held calls for later requests."""

    review: ProxyReview
    memory: ProxyMemory = field(default_factory=ProxyMemory)
    limits: SizeLimits = field(default_factory=SizeLimits)

    def prepare_request(
        self, dialect: Dialect, headers: Mapping[str, str], body: bytes
    ) -> PreparedRequest:
        """Insert held calls and their results into a request; otherwise keep its bytes."""
        request = parse_object(body)
        if request is None:
            return PreparedRequest(body, None, None)
        session = self.memory.identify(headers, request)
        number = dialect.count_answers(request)
        if session is not None and self._restore(dialect, request, session):
            body = render_compact_json(request)
        exchange = HeldExchange(
            dialect,
            request,
            has_session=session is not None,
            remember=partial(self._remember, session, number),
            clock=self.review.clock,
        )
        return PreparedRequest(body, session, exchange)

    def _restore(self, dialect: Dialect, request: Json, session: str) -> bool:
        original = dict(request)
        try:
            return self.memory.restore(dialect, request, session)
        except Exception as error:  # noqa: BLE001 - an error of steering must not stop the agent
            logger.warning("a request passes as it is: unexpected %s", type(error).__name__)
            request.clear()
            request.update(original)
            return False

    def _remember(
        self, session: str | None, number: int, exchange: HeldExchange, merged: Json
    ) -> None:
        if session is not None:
            self.memory.remember(session, number, exchange, merged)

    async def send_answer(
        self, out: AnswerSender, prepared: PreparedRequest, ask: AskModel
    ) -> None:
        """Send an answer to the client, and in place of one with held calls only the next one."""
        exchange = prepared.exchange
        if exchange is None or not out.is_readable:
            _log_unreviewed(
                "its content coding is unknown here"
                if exchange is not None
                else "its request is no JSON object"
            )
            await out.pass_through()
            return
        self.memory.close_conversations(exchange.request)
        reviewed = _ReviewedExchange(self, prepared.session, exchange, ask)
        if out.content_type == _EVENT_STREAM:
            await reviewed.send_stream(out)
        elif out.content_type.endswith("json"):
            await reviewed.send_whole(out)
        else:
            await out.pass_through()


@dataclass(frozen=True, slots=True)
class _ReviewedExchange:
    """The answers to one request on their way to the client."""

    reviewer: AnswerReviewer
    session: str | None
    exchange: HeldExchange
    ask: AskModel

    async def send_stream(self, out: AnswerSender) -> None:
        """Send a stream, continued by the streams of later answers."""
        editor = self.exchange.dialect.create_editor()
        source: AnswerSender | None = out
        await out.start_stream()
        while source is not None:
            answer = StreamedAnswer(
                self.exchange.dialect,
                editor,
                self._create_calls(),
                self.reviewer.limits.response,
                self.exchange.complete if self.exchange.has_to_complete else None,
            )
            await self._send_events(out, source, answer)
            source = await self._continue_stream(out, answer) if answer.is_held else None
            editor.start_answer()
        await out.end_stream()

    async def _send_events(
        self, out: AnswerSender, source: AnswerSender, answer: StreamedAnswer
    ) -> None:
        async for chunk in source.iterate_body():
            await out.send_part(answer.feed(chunk))
            if answer.is_held:
                return
        await out.send_part(answer.finish())
        _log_unreviewed(answer.bypass_reason)

    async def _continue_stream(
        self, out: AnswerSender, answer: StreamedAnswer
    ) -> AnswerSender | None:
        """Return the next answer; None after sending what the client gets of this one."""
        body = answer.assemble()
        continuation = self._hold(body, answer.messages)
        if continuation is not None and continuation.held.has_client_calls:
            self._complete_shared(answer, continuation)
            await out.send_part(answer.release_others(is_continued=False))
            return None
        following = await self._ask_again(continuation, is_streamed=True)
        if continuation is None or following is None:
            answer.complete_answer()
            await out.send_part(answer.release())
            return None
        self._accept(continuation, body)
        await out.send_part(answer.release_others(is_continued=True))
        return following

    def _complete_shared(self, answer: StreamedAnswer, continuation: Continuation) -> None:
        answer.editor.set_merged(self.exchange.complete_shared(continuation))

    async def send_whole(self, out: AnswerSender) -> None:
        """Send a complete answer, merged of all answers of the model."""
        source, body = out, await self._read_answer(out)
        if body is None:
            await out.pass_through()
            return
        while (continuation := self._review_whole(body)) is not None:
            if continuation.held.has_client_calls:
                break
            following = await self._ask_again(continuation, is_streamed=False)
            next_body = None if following is None else await self._read_next(following)
            if following is None or next_body is None:
                continuation = None
                break
            self._accept(continuation, body)
            source, body = following, next_body
        merged = self._complete(body, continuation)
        if merged is body and source is out:
            await out.pass_through()
        else:
            await source.send_body(render_compact_json(merged))

    def _complete(self, body: Json, continuation: Continuation | None) -> Json:
        if continuation is None:
            return self.exchange.complete(body)
        return self.exchange.complete_shared(continuation)

    def _review_whole(self, body: Json) -> Continuation | None:
        """Return how an answer continues; None if it has no held call."""
        messages = self._review(body)
        return self._hold(body, messages) if messages else None

    async def _read_next(self, source: AnswerSender) -> Json | None:
        """Return the body of a later answer; None, with a log line, if it is incomplete."""
        try:
            body = await self._read_answer(source)
        except ProviderError as error:
            logger.warning("a held call goes through: unexpected %s", type(error).__name__)
            return None
        if body is None:
            logger.warning("a held call goes through: the model's next answer cannot be read")
        return body

    async def _read_answer(self, source: AnswerSender) -> Json | None:
        """Return the body of an answer; None if it is too large or no JSON object."""
        limit = self.reviewer.limits.response
        body = await source.read_body(limit)
        if body is None:
            _log_unreviewed(f"it is larger than {limit} bytes")
        return None if body is None else parse_object(body)

    def _create_calls(self) -> ReviewedCalls | None:
        if not self.exchange.may_hold:
            return None
        return ReviewedCalls(self.reviewer.review.for_session(self.session))

    def _review(self, body: Json) -> Mapping[str, str]:
        calls = self._create_calls()
        try:
            listed = self.exchange.dialect.list_calls(body)
            return {} if calls is None else review_calls(calls, listed)
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            _log_unreviewed(f"unexpected {type(error).__name__}")
            return {}

    def _hold(self, body: Json, messages: Mapping[str, str]) -> Continuation | None:
        """Return how an answer with held calls continues; None if they have to go through."""
        try:
            obstacle = self.exchange.find_obstacle(body)
            if obstacle is None:
                return self.exchange.hold(body, messages)
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            obstacle = f"unexpected {type(error).__name__}"
        logger.warning("a held call goes through: %s", obstacle)
        return None

    async def _ask_again(
        self, continuation: Continuation | None, *, is_streamed: bool
    ) -> AnswerSender | None:
        """Ask the model for the answer after held calls; None if they have to go through."""
        if continuation is None:
            return None
        self.reviewer.memory.open_conversation(self.exchange, continuation.held.results)
        following = await self.ask(continuation.body)
        if following is not None and is_streamed != (following.content_type == _EVENT_STREAM):
            logger.warning("a held call goes through: the model's next answer has another form")
            return None
        return following

    def _accept(self, continuation: Continuation, body: Json) -> None:
        """Continue with the next answer."""
        self.reviewer.memory.close_conversations(self.exchange.request)
        self.exchange.accept(continuation)
        _log_usage(self.exchange.dialect, body)


def _log_usage(dialect: Dialect, body: Json) -> None:
    tokens = dialect.reader.read(body).tokens
    used = "" if tokens is None else f" ({tokens.input} input, {tokens.output} output tokens)"
    logger.info(
        "asked the model again; the client does not see the usage of its held answer%s", used
    )


def _log_unreviewed(reason: str | None) -> None:
    if reason is not None:
        logger.warning("an answer passed without review: %s", reason)
