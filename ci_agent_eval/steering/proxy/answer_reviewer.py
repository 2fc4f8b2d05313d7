"""Review of answers: the proxy answers held calls itself and asks the model again."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ci_agent_eval.errors import AgentEvalError
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_object,
    get_text,
    parse_object,
    render_compact_json,
)
from ci_agent_eval.model_traffic.forwarding.answer_sender import AnswerSender
from ci_agent_eval.model_traffic.forwarding.upstream import ProviderError
from ci_agent_eval.steering.policy.model import Allow, Decision, Steer, ToolCallRequest
from ci_agent_eval.steering.policy.reactor import FULL_SUITE
from ci_agent_eval.steering.proxy.api import Api, ClientCall, Joiner
from ci_agent_eval.steering.proxy.session_identity import SESSION_HEADER, identify_session
from ci_agent_eval.steering.proxy.streamed_answer import StreamedAnswer

logger = logging.getLogger(__name__)

MAX_HELD_ANSWERS = 4
"""Maximum number of answers with held calls behind one answer of the client's."""

MAX_SECONDS = 600.0
"""Time after which the model is not asked again for one request."""

NOT_RUN = (
    "Not run, because another call of this answer was held back. Send it again if you need it."
)
"""The result of the other calls of an answer: the APIs require the results of all together."""

MAX_RESPONSES = 4096
"""Maximum number of responses that clients may continue by their ids."""

_NAME_LENGTH = 64
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


class Reviewer(Protocol):
    """The interface of the reactor."""

    def review(self, call: ToolCallRequest, session: str | None, now: float) -> Decision:
        """Decide whether a call may run; `now` is in seconds."""


@dataclass(frozen=True, slots=True)
class CallReview:
    """The review of calls, with its clock."""

    build_reviewer: Callable[[], Reviewer]
    """Returns the reviewer of one answer, in which an intent may occur several times."""
    clock: Callable[[], float]

    def list_messages(self, calls: Iterable[ClientCall], session: str | None) -> dict[str, str]:
        """Return the results of the calls to hold, by their ids."""
        reviewer = self.build_reviewer()
        messages: dict[str, str] = {}
        for call in calls:
            if call.tool is None:
                continue
            request = ToolCallRequest(call.tool, call.arguments)
            decision = self._decide(reviewer, request, session)
            if isinstance(decision, Steer):
                _log_held(decision, call.tool, session)
                # Anthropic's API refuses empty texts.
                is_empty = not decision.message.strip()
                message = f"Held back: {decision.reason}" if is_empty else decision.message
                messages[call.id] = message
        return messages

    def _decide(self, reviewer: Reviewer, call: ToolCallRequest, session: str | None) -> Decision:
        try:
            return reviewer.review(call, session, self.clock())
        except Exception as error:  # noqa: BLE001 - an error of steering must not stop the agent
            # Only log texts of own errors; others may contain the model's answer.
            is_own = isinstance(error, AgentEvalError)
            description = str(error) if is_own else f"unexpected {type(error).__name__}"
            logger.warning("a call goes through unreviewed: %s", description)
            return Allow("the review failed")


def _log_held(decision: Steer, tool: str, session: str | None) -> None:
    """Log a held call without its command, which may contain secrets."""
    is_full_suite = decision.handler == FULL_SUITE
    description = "full-suite pytest command" if is_full_suite else f"call ({decision.handler})"
    name, session_prefix = tool[:_NAME_LENGTH], "unknown" if session is None else session[:8]
    logger.info(
        "Steering %s: held back a call of %r, session %s", description, name, session_prefix
    )


class KnownResponse(NamedTuple):
    """The session of a response, and the id from which the provider continues it."""

    session: str
    last_id: str
    """A stream has the id of the first answer; the provider continues from the last one."""


@dataclass(slots=True)
class KnownResponses:
    """Remembers the responses that were used last."""

    _known: OrderedDict[str, KnownResponse] = field(default_factory=OrderedDict)

    def remember(self, response_id: str, session: str, last_id: str) -> None:
        """Record a response, and forget the oldest one above the limit."""
        self._known.pop(response_id, None)
        self._known[response_id] = KnownResponse(session, last_id)
        if len(self._known) > MAX_RESPONSES:
            self._known.popitem(last=False)

    def find(self, response_id: object) -> KnownResponse | None:
        """Return a response and mark it as used; None if it is not known."""
        if not isinstance(response_id, str) or response_id not in self._known:
            return None
        self._known.move_to_end(response_id)
        return self._known[response_id]


@dataclass(frozen=True, slots=True)
class PreparedRequest:
    """A request for the provider."""

    body: bytes
    json: Json | None
    """None: the request is no JSON object, so that its answer is not reviewed."""
    session: str | None


@dataclass(frozen=True, slots=True)
class AnswerReviewer:
    """Reviews the answers to requests."""

    review: CallReview
    limits: SizeLimits = field(default_factory=SizeLimits)
    session_header: str = SESSION_HEADER
    known: KnownResponses = field(default_factory=KnownResponses)

    def prepare_request(self, headers: Mapping[str, str], body: bytes) -> PreparedRequest:
        """Identify the session of a request, and let the provider continue its last response."""
        request = parse_object(body)
        if request is None:
            return PreparedRequest(body, None, None)
        session = identify_session(
            headers, request, header=self.session_header, find_session=self._find_session
        )
        previous_id = request.get("previous_response_id")
        previous = self.known.find(previous_id)
        if previous is not None and previous.last_id != previous_id:
            request["previous_response_id"] = previous.last_id
            body = render_compact_json(request)
        return PreparedRequest(body, request, session)

    def _find_session(self, response_id: str) -> str | None:
        response = self.known.find(response_id)
        return None if response is None else response.session

    async def send_answer(
        self, api: Api, out: AnswerSender, prepared: PreparedRequest, ask: AskModel
    ) -> None:
        """Send an answer to the client, and in place of one with held calls only the next one."""
        request = prepared.json
        if request is None or not out.is_readable:
            _log_unreviewed(
                "its request is not a JSON object"
                if request is None
                else "its content coding is unknown here"
            )
            await out.pass_through()
            return
        exchange = _Exchange(self, api, request, prepared.session, ask, self.review.clock())
        if out.content_type == _EVENT_STREAM:
            await exchange.send_stream(out)
        elif out.content_type.endswith("json"):
            await exchange.send_whole(out)
        else:
            await out.pass_through()


@dataclass(slots=True)
class _Exchange:
    """One request of a client, and the answers of the model behind the client's answer."""

    reviewer: AnswerReviewer
    api: Api
    request: Json
    """The request that the provider got last."""
    session: str | None
    ask: AskModel
    start: float
    held_answers: int = 0
    first_id: str | None = None
    """The id of the response that the client gets, if it is streamed."""

    async def send_stream(self, out: AnswerSender) -> None:
        """Send a stream, continued by the streams of later answers."""
        joiner = self.api.create_joiner()
        source: AnswerSender | None = out
        await out.start_stream()
        while source is not None:
            source = await self._send_events(out, source, joiner)
            joiner.start_answer()
        await out.end_stream()

    async def _send_events(
        self, out: AnswerSender, source: AnswerSender, joiner: Joiner
    ) -> AnswerSender | None:
        """Send a stream up to its end or held calls; return the stream that continues it."""
        answer = StreamedAnswer(self.api, joiner, self._note_response)
        limit = self.reviewer.limits.response
        async for chunk in _append_end(source.iterate_body()):
            await out.send_part(answer.finish() if chunk is None else answer.feed(chunk))
            if answer.size > limit:
                _log_unreviewed(f"it is larger than {limit} bytes")
                await out.send_part(answer.release_all())
            if answer.is_waiting:
                following = await self._continue_stream(answer)
                if following is not None:
                    return following
                await out.send_part(answer.release())
        return None

    async def _continue_stream(self, answer: StreamedAnswer) -> AnswerSender | None:
        """Return the stream after an answer with held calls; None if its calls go through."""
        try:
            body = answer.assemble()
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            _log_unreviewed(f"unexpected {type(error).__name__}")
            return None
        return await self._ask_if_held(body, is_streamed=True)

    async def send_whole(self, out: AnswerSender) -> None:
        """Send a complete answer, with the beginning of those before it."""
        body = await self._read_answer(out)
        if body is None:
            await out.pass_through()
            return
        source, joined = out, body
        while (following := await self._ask_if_held(body, is_streamed=False)) is not None:
            next_body = await self._read_next(following)
            if next_body is None:
                break
            source, body, joined = following, next_body, self.api.join_answers(joined, next_body)
        self._note_response({"response": body})
        if source is out:
            await out.pass_through()
        else:
            await source.send_body(render_compact_json(joined))

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

    async def _ask_if_held(self, body: Json, *, is_streamed: bool) -> AnswerSender | None:
        """Return the model's next answer; None if this one goes to the client."""
        request = self._review(body)
        following = None if request is None else await self.ask(render_compact_json(request))
        if request is None or following is None:
            return None
        if is_streamed != (following.content_type == _EVENT_STREAM):
            logger.warning("a held call goes through: the model's next answer has another form")
            return None
        self.request = request
        _log_usage(self.api, body)
        return following

    def _review(self, body: Json) -> Json | None:
        """Return the request for the next answer; None if this one has no held call."""
        if self.held_answers == MAX_HELD_ANSWERS:
            return None
        try:
            calls = self.api.list_calls(body)
            messages = self.reviewer.review.list_messages(calls, self.session) if calls else {}
            if not messages:
                return None
            obstacle = self._find_obstacle(calls, body)
            if obstacle is None:
                return self._build_request(body, {c.id: messages.get(c.id, NOT_RUN) for c in calls})
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            obstacle = f"unexpected {type(error).__name__}"
        logger.warning("a held call goes through: %s", obstacle)
        return None

    def _find_obstacle(self, calls: Sequence[ClientCall], body: Json) -> str | None:
        """Return why the calls of an answer have to go through; None if they can be held."""
        if self.session is None:
            return "nothing in the request identifies its session"
        if self.reviewer.review.clock() - self.start > MAX_SECONDS:
            return f"the request has taken more than {MAX_SECONDS:.0f} seconds"
        ids = {call.id for call in calls if call.id and call.tool is not None}
        if len(ids) < len(calls):
            return "the answer has a call that only the client can answer"
        return self.api.find_obstacle(self.request, body)

    def _build_request(self, body: Json, results: Mapping[str, str]) -> Json:
        self.held_answers += 1
        request = self.api.extend_request(self.request, body, results)
        if self.held_answers == MAX_HELD_ANSWERS:
            request["tool_choice"] = self.api.no_calls
        return request

    def _note_response(self, data: Json) -> None:
        """Remember the response that an event or an answer has, before the client knows its id."""
        response_id = get_text(get_object(data, "response"), "id")
        if response_id and self.session is not None:
            self.first_id = self.first_id or response_id
            for name in (self.first_id, response_id):
                self.reviewer.known.remember(name, self.session, response_id)


async def _append_end(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes | None]:
    """Yield the chunks of a body, and None at its end."""
    async for chunk in chunks:
        yield chunk
    yield None


def _log_usage(api: Api, body: Json) -> None:
    tokens = api.reader.read(body).tokens
    used = "" if tokens is None else f" ({tokens.input} input, {tokens.output} output tokens)"
    logger.info(
        "asked the model again; the client does not see the usage of its held answer%s", used
    )


def _log_unreviewed(reason: str) -> None:
    logger.warning("an answer passed without review: %s", reason)
