"""Review of answers: the proxy answers held calls itself and asks the model again."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ci_agent_eval.errors import AgentEvalError
from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_object,
    get_text,
    parse_object,
    render_compact_json,
)
from ci_agent_eval.model_traffic.formats.sse import Splitter, get_data, parse_data
from ci_agent_eval.model_traffic.forwarding.answer_sender import AnswerSender
from ci_agent_eval.model_traffic.forwarding.upstream import ProviderError
from ci_agent_eval.steering.policy.model import Allow, Decision, Steer, ToolCallRequest
from ci_agent_eval.steering.policy.reactor import FULL_SUITE, Reactor
from ci_agent_eval.steering.proxy.apis import Api, ClientCall, Part, StreamJoiner
from ci_agent_eval.steering.proxy.session_identity import SESSION_HEADER, identify_session

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

MAX_BYTES = 64 * 1024 * 1024
"""Default maximum size of a request or answer that is held in memory."""

_NAME_LENGTH = 64
_EVENT_STREAM = "text/event-stream"

AskModel = Callable[[bytes], Awaitable[AnswerSender]]
"""Sends another body in place of the client's. Raises ProviderError."""


@dataclass(frozen=True, slots=True)
class AnswerReviewer:
    """Reviews the answers to requests, and remembers the responses that were used last."""

    build_reviewer: Callable[[], Reactor]
    """Returns the reviewer of one answer, in which an intent may occur several times."""
    clock: Callable[[], float]
    max_request_bytes: int = MAX_BYTES
    """Larger requests to a reviewed API are refused."""
    max_response_bytes: int = MAX_BYTES
    """Larger answers pass without review."""
    session_header: str = SESSION_HEADER
    _responses: OrderedDict[str, tuple[str, str]] = field(default_factory=OrderedDict)
    """The sessions of responses by their ids, with the id from which the provider continues.

    A stream has the id of the first answer; the provider continues from the last one.
    """

    def start_exchange(self, api: Api, headers: Mapping[str, str], body: bytes) -> Exchange:
        """Identify the session of a request, and let the provider continue its last response."""
        request = parse_object(body)
        if request is None:
            return Exchange(self, api, body, None, None, self.clock())
        previous_id = get_text(request, "previous_response_id") or ""
        session, last_id = self._responses.get(previous_id, (None, previous_id))
        session = identify_session(headers, request, self.session_header, session)
        if last_id != previous_id:
            request["previous_response_id"] = last_id
            body = render_compact_json(request)
        return Exchange(self, api, body, request, session, self.clock())

    def remember(self, response_id: str, session: str, last_id: str) -> None:
        """Record a response, and forget the oldest one above the limit."""
        self._responses[response_id] = session, last_id
        self._responses.move_to_end(response_id)
        if len(self._responses) > MAX_RESPONSES:
            self._responses.popitem(last=False)

    def list_messages(self, calls: Sequence[ClientCall], session: str | None) -> dict[str, str]:
        """Return the results of the calls to hold, by their ids."""
        reviewer = self.build_reviewer()
        messages: dict[str, str] = {}
        for call in calls:
            decision = self._decide(reviewer, call, session)
            if isinstance(decision, Steer):
                messages[call.id] = decision.message
        return messages

    def _decide(self, reviewer: Reactor, call: ClientCall, session: str | None) -> Decision:
        if call.tool is None:
            return Allow("only the client can answer it")
        try:
            request = ToolCallRequest(call.tool, call.arguments)
            decision = reviewer.review(request, session, self.clock())
        except Exception as error:  # noqa: BLE001 - an error of steering must not stop the agent
            # Only log texts of own errors; others may contain the model's answer.
            is_own = isinstance(error, AgentEvalError)
            description = str(error) if is_own else f"unexpected {type(error).__name__}"
            logger.warning("a call goes through unreviewed: %s", description)
            return Allow("the review failed")
        if isinstance(decision, Steer):
            _log_held(decision, call.tool, session)
        return decision


def _log_held(decision: Steer, tool: str, session: str | None) -> None:
    """Log a held call without its command, which may contain secrets."""
    is_full_suite = decision.handler == FULL_SUITE
    description = "full-suite pytest command" if is_full_suite else f"call ({decision.handler})"
    name, session_prefix = tool[:_NAME_LENGTH], "unknown" if session is None else session[:8]
    logger.info(
        "Steering %s: held back a call of %r, session %s", description, name, session_prefix
    )


@dataclass(slots=True)
class Exchange:
    """One request of a client, and the answers of the model behind the client's answer."""

    reviewer: AnswerReviewer
    api: Api
    body: bytes
    """The request's body for the provider."""
    request: Json | None
    """The request that the provider got last; None if it is not a JSON object."""
    session: str | None
    start: float
    held_answers: int = 0
    first_id: str | None = None
    """The id of the response that the client gets, if it is streamed."""

    async def send_answer(self, out: AnswerSender, ask: AskModel) -> None:
        """Send an answer to the client, and in place of one with held calls only the next one."""
        if self.request is None:
            _log_unreviewed("its request is not a JSON object")
        elif not out.is_readable:
            _log_unreviewed("its content coding is unknown here")
        elif out.content_type == _EVENT_STREAM:
            await self._send_stream(out, ask)
            return
        elif out.content_type.endswith("json"):
            out = await self._find_last_answer(out, ask)
        await out.pass_through()

    async def _find_last_answer(self, out: AnswerSender, ask: AskModel) -> AnswerSender:
        """Return the first complete answer without a held call."""
        body = await self._read_answer(out)
        while body is not None:
            following = await self._ask_if_held(body, ask, is_streamed=False)
            next_body = None if following is None else await self._read_next(following)
            if following is None or next_body is None:
                break
            out, body = following, next_body
        self._note_response({"response": body})
        return out

    async def _read_next(self, out: AnswerSender) -> Json | None:
        try:
            body = await self._read_answer(out)
        except ProviderError:
            body = None
        if body is None:
            logger.warning("a held call goes through: the model's next answer cannot be read")
        return body

    async def _read_answer(self, out: AnswerSender) -> Json | None:
        """Return the body of an answer; None if it is too large or no JSON object."""
        limit = self.reviewer.max_response_bytes
        body = await out.read_body(limit)
        if body is None:
            _log_unreviewed(f"it is larger than {limit} bytes")
        return None if body is None else parse_object(body)

    async def _send_stream(self, out: AnswerSender, ask: AskModel) -> None:
        """Send a stream, continued by the streams of later answers."""
        joiner = StreamJoiner()
        source: AnswerSender | None = out
        await out.start_stream()
        while source is not None:
            answer = StreamedAnswer(self.api, joiner)
            async for chunk in source.iterate_body():
                await self._send_events(out, answer, answer.split(chunk))
            await self._send_events(out, answer, answer.split_rest())
            source = await self._continue_stream(answer, ask)
            if source is None:
                await out.send_part(answer.release())
            joiner.start_answer()
        await out.end_stream()

    async def _send_events(
        self, out: AnswerSender, answer: StreamedAnswer, events: Sequence[bytes]
    ) -> None:
        for raw in events:
            data = parse_data(raw)
            # A client may continue the response as soon as it knows its id.
            self._note_response(data or {})
            await out.send_part(answer.feed(raw, data))
        if answer.size > self.reviewer.max_response_bytes:
            _log_unreviewed(f"it is larger than {self.reviewer.max_response_bytes} bytes")
            await out.send_part(answer.release())

    async def _continue_stream(self, answer: StreamedAnswer, ask: AskModel) -> AnswerSender | None:
        """Return the stream after an answer with held calls; None if its calls go through."""
        if not answer.has_calls:
            return None
        try:
            body = self.api.reader.assemble(answer.events)
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            _log_unreviewed(f"unexpected {type(error).__name__}")
            return None
        return await self._ask_if_held(body, ask, is_streamed=True)

    async def _ask_if_held(
        self, body: Json, ask: AskModel, *, is_streamed: bool
    ) -> AnswerSender | None:
        """Return the model's next answer; None if this one goes to the client."""
        request = self._review(body)
        if request is None:
            return None
        try:
            following = await ask(render_compact_json(request))
        except ProviderError as error:
            problem = f"the model could not be asked again ({type(error).__name__})"
        else:
            problem = f"asked again, the model's provider answered with status {following.status}"
            if following.is_success and following.is_readable:
                problem = "the model's next answer has another form"
                if is_streamed == (following.content_type == _EVENT_STREAM):
                    self.request = request
                    return following
        logger.warning("a held call goes through: %s", problem)
        return None

    def _review(self, body: Json) -> Json | None:
        """Return the request for the next answer; None if this one has no held call."""
        if self.held_answers == MAX_HELD_ANSWERS or self.request is None:
            return None
        try:
            calls = self.api.list_calls(body)
            messages = self.reviewer.list_messages(calls, self.session)
            if not messages:
                return None
            obstacle = self._find_obstacle(calls) or self.api.find_obstacle(self.request, body)
            if obstacle is None:
                results = {call.id: messages.get(call.id, NOT_RUN) for call in calls}
                return self._build_request(self.api.extend_request(self.request, body, results))
        except Exception as error:  # noqa: BLE001 - an error of steering must not lose an answer
            obstacle = f"unexpected {type(error).__name__}"
        logger.warning("a held call goes through: %s", obstacle)
        return None

    def _find_obstacle(self, calls: Sequence[ClientCall]) -> str | None:
        """Return why the calls of an answer have to go through; None if they can be held."""
        if self.session is None:
            return "nothing in the request identifies its session"
        if self.reviewer.clock() - self.start > MAX_SECONDS:
            return f"the request has taken more than {MAX_SECONDS:.0f} seconds"
        ids = {call.id for call in calls if call.id and call.tool is not None}
        return (
            None if len(ids) == len(calls) else "it is beside one that only the client can answer"
        )

    def _build_request(self, request: Json) -> Json:
        """Return a request that lets the model make no calls after too many held answers."""
        self.held_answers += 1
        is_last = self.held_answers == MAX_HELD_ANSWERS
        return {**request, "tool_choice": self.api.no_calls} if is_last else request

    def _note_response(self, data: Json) -> None:
        """Remember the response that an event or an answer has, before the client knows its id."""
        response_id = get_text(get_object(data, "response"), "id")
        if response_id and self.session is not None:
            self.first_id = self.first_id or response_id
            for name in (self.first_id, response_id):
                self.reviewer.remember(name, self.session, response_id)


@dataclass(slots=True)
class StreamedAnswer:
    """Passes on the events of an answer, and holds them from its first call."""

    api: Api
    joiner: StreamJoiner
    events: list[Json] = field(default_factory=list)
    size: int = 0
    """The number of bytes kept for the review."""
    has_calls: bool = False
    """Whether calls wait for the review."""
    _splitter: Splitter = field(default_factory=Splitter)
    _held: list[bytes] = field(default_factory=list)
    _holds: bool = False
    _is_released: bool = False

    def split(self, chunk: bytes) -> list[bytes]:
        """Return the events that the next bytes complete."""
        self.size += 0 if self._is_released else len(chunk)
        return self._splitter.feed(chunk)

    def split_rest(self) -> list[bytes]:
        """Return the incomplete event at the end."""
        last = self._splitter.take_rest()
        return [last] if last else []

    def feed(self, raw: bytes, data: Json | None) -> bytes:
        """Process an event; return the bytes to send now."""
        if self._is_released:
            return self.joiner.render(raw, data)
        if data is not None:
            self.events.append(data)
        self._hold_or_pass(None if data is None else self.api.find_part(data))
        if self._holds and not _is_keep_alive(raw, data):
            self._held.append(raw)
            return b""
        held = b"" if self._holds else self._take_held()
        return held + self.joiner.render(raw, data)

    def release(self) -> bytes:
        """Return the held events; all later ones pass."""
        self._is_released, self.has_calls, self.size = True, False, 0
        self.events.clear()
        return self._take_held()

    def _hold_or_pass(self, part: Part | None) -> None:
        """Decide whether events are held from this one on."""
        if part is not None and not self.has_calls:
            self.has_calls = part == "call"
            self._holds = part != "text"

    def _take_held(self) -> bytes:
        held, self._held = self._held, []
        return b"".join(self.joiner.render(raw, parse_data(raw)) for raw in held)


def _is_keep_alive(raw: bytes, data: Json | None) -> bool:
    """Return whether an event only keeps the connection open, so that it passes others."""
    return not get_data(raw).strip() if data is None else data.get("type") == "ping"


def _log_unreviewed(reason: str) -> None:
    logger.warning("an answer passed without review: %s", reason)
