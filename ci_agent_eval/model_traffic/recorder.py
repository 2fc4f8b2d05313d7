"""The recorder of an episode's model traffic, shared by the hooks and the gateway.

A hook calls `start_call` for each request, obeys `ModelCall.decide`, and passes what the provider
answers to the call. The record is complete whatever the framework makes of it, because it is
written as the bytes pass. Thread-safe: agents may call models in several threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Protocol, TypeVar

from ci_agent_eval.contract.trajectory import CallSource
from ci_agent_eval.model_traffic.formats.assembler import AnswerAssembler
from ci_agent_eval.model_traffic.formats.json_values import UnreadableTrafficError
from ci_agent_eval.model_traffic.formats.message_format import Format, HTTPAnswer
from ci_agent_eval.model_traffic.messages import ModelAnswer, ModelRequest, RequestHead

CallState = Literal[
    "open",
    "complete",
    "broken",  # the stream ended early, or its reader stopped
    "failed",  # no answer: a connection error, or a timeout
    "refused",  # we answered instead of the provider
]


@dataclass(frozen=True, slots=True)
class Decision:
    """What happens to a request: it passes, is answered by us, or waits and asks again."""

    answer: HTTPAnswer | None = None
    """Answer to give instead of asking the provider."""
    wait_s: float = 0.0
    """Seconds to sleep before `decide` is called again."""


PASS = Decision()

ENDED_EARLY = "the answer broke off"
"""Error of a call whose body ended without the end that its format has."""
READER_STOPPED = "its reader stopped before the end"
"""Error of a call whose answer the agent did not read to its end; a cancellation may follow."""
EPISODE_ENDED = "the episode ended before the answer"
"""Error of a call that is open when its episode ends."""

MAX_REQUEST_BYTES = 32 * 2**20
"""Stored bytes of a request's body; a larger one is cut, and so cannot be read or replayed."""
MAX_ANSWER_BYTES = 16 * 2**20
"""Stored bytes of an answer's body; of a larger one the beginning is kept."""

STORED_HEADERS = frozenset(
    {
        "content-type",
        "retry-after",
        "retry-after-ms",
        "x-should-retry",
        "x-request-id",
        "request-id",
        "x-amzn-requestid",
        "x-amzn-errortype",
    }
)
"""The headers of an answer that are stored; others may hold cookies and account names."""


class ModelCallPlayer(Protocol):
    """Replays and records calls: the cassette of an episode."""

    @property
    def is_replay(self) -> bool:
        """Whether no provider may be asked."""

    def find_answer(self, call: ModelCall) -> HTTPAnswer | None:
        """Return the recorded answer; None if the provider must be asked.

        Raises MissingRecordingError in replay, whose message shows the difference.
        """

    def store(self, call: ModelCall) -> None:
        """Store an ended live call."""


Head = TypeVar("Head", bound=RequestHead)


class MissingRecordingError(Exception):
    """Raised in replay for a request without a recording."""


@dataclass(eq=False)
class ModelCall:
    """One request to a model and its answer, as far as they are known."""

    number: int
    """Position in the episode; 1-based, in the order of the requests."""
    format: Format
    url: str
    """Address of the request, without its query."""
    body: bytes = field(repr=False)
    started_s: float
    """Time of the request on the recorder's clock."""
    _recorder: TrafficRecorder = field(repr=False)
    state: CallState = "open"
    source: CallSource = "live"
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    first_byte_s: float | None = None
    ended_s: float | None = None
    error: str | None = None
    """Why there is no complete answer, or why it cannot be read."""
    is_cut: bool = False
    """Whether the stored request or answer is cut at its size limit."""
    recorded_latency_ms: float | None = None
    """Latency of the live call that is replayed."""
    recorded_first_byte_ms: float | None = None
    """Time to the first byte of the live call that is replayed."""
    tool_call_id: str | None = None
    """Id of the tool call that makes this call, if the engine runs the tool."""
    missed: Sequence[ModelRequest] = field(default=(), repr=False)
    """The request and the most similar recorded one, as a cassette without it compares them."""
    chunks: list[bytes] = field(default_factory=list, repr=False)
    """The body of the answer as it arrived."""
    _stored_bytes: int = field(default=0, repr=False)
    _assembler: AnswerAssembler | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Cut a request over the size limit."""
        if len(self.body) > MAX_REQUEST_BYTES:
            self.error = f"the request has {len(self.body):,} bytes; {MAX_REQUEST_BYTES:,} are kept"
            self.body, self.is_cut = self.body[:MAX_REQUEST_BYTES], True

    @cached_property
    def request(self) -> ModelRequest | None:
        """The request, parsed when it is first needed; None if it cannot be read."""
        return self._parse(self.format.parse_request)

    @property
    def head(self) -> RequestHead | None:
        """The request without its messages and tools, which need most of the parsing's time."""
        return self.request if "request" in vars(self) else self._parse(self.format.parse_head)

    def _parse(self, parse: Callable[[str, bytes], Head]) -> Head | None:
        try:
            return parse(self.url, self.body)
        except UnreadableTrafficError as error:
            self.error = self.error or f"the request could not be read: {error}"
            return None

    @property
    def answer(self) -> ModelAnswer | None:
        """The answer so far; None before its first byte."""
        return None if self._assembler is None else self._assembler.answer

    @property
    def is_abandoned(self) -> bool:
        """Whether the agent, and not the provider, left an answer incomplete."""
        if self._assembler is None or self._assembler.is_complete:
            return False
        own_ends = (READER_STOPPED, EPISODE_ENDED)
        return self.state == "open" or (self.error or "").startswith(own_ends)

    def decide(self) -> Decision:
        """Return whether the request passes, waits or is answered by us."""
        return self._recorder.decide(self)

    def set_response(self, status: int, headers: Mapping[str, str]) -> None:
        """Record the head of the answer; the names of `headers` may have any case."""
        by_name = {name.lower(): value for name, value in headers.items()}
        self.status = status
        self.headers = {name: by_name[name] for name in by_name if name in STORED_HEADERS}
        self._assembler = self.format.create_assembler(status, by_name)

    def feed(self, chunk: bytes) -> None:
        """Record the next bytes of the answer's body, without transfer or content encoding."""
        if self._assembler is None or not chunk or self.state != "open":
            return
        if self.first_byte_s is None:
            self.first_byte_s = self._recorder.clock()
        if self._stored_bytes + len(chunk) > MAX_ANSWER_BYTES:
            chunk = chunk[: MAX_ANSWER_BYTES - self._stored_bytes]
            self.is_cut = True
        self._stored_bytes += len(chunk)
        self.chunks.append(chunk)
        self._assembler.feed(chunk)
        if self._assembler.is_ended:
            self.end()
        elif self.is_cut:
            self.end(f"the answer has more than {MAX_ANSWER_BYTES:,} bytes; the rest is not kept")

    def end(self, error: str | None = None) -> None:
        """Record the end of the body or, with `error`, of the request; the first end counts."""
        self._recorder.end_call(self, error)

    def find_end_state(self, error: str | None) -> CallState:
        """Return the state of a call that ends, with the error that ended it."""
        if self._assembler is not None and self._assembler.is_complete:
            return "complete"
        if error is not None:
            return "failed" if self.first_byte_s is None else "broken"
        is_redirect = self.status is not None and 300 <= self.status < 400
        return "complete" if is_redirect else "broken"


Call = TypeVar("Call", bound=ModelCall)


@dataclass(eq=False)
class TrafficRecorder:
    """Records the model calls of one episode and decides about each."""

    clock: Callable[[], float]
    """Seconds from any fixed point."""
    player: ModelCallPlayer | None = None
    check_limits: Callable[[TrafficRecorder], str | None] = lambda _: None
    """Returns why no further call is allowed, if so; called before each request."""
    get_wait_s: Callable[[ModelCall], float] = lambda _: 0.0
    """Returns the seconds that a request has to wait for the provider's rate limit."""
    on_call_ended: Callable[[ModelCall], None] = lambda _: None
    refusal: str | None = None
    """Why the recorder refuses calls; once set, it refuses every further one."""
    is_shared: bool = False
    """Whether a call was assigned to this episode because it was the only one running."""
    is_ended: bool = False
    """Whether the episode has ended; its threads may still call models."""
    add_child_variables: Callable[[Mapping[Any, Any] | None], Mapping[Any, Any]] | None = None
    """Returns the variables of a process that the agent's code starts; None: they stay."""
    outer: TrafficRecorder | None = field(default=None, repr=False)
    """The recorder of the episode in which a run with this one takes place."""
    whole: TrafficRecorder | None = field(default=None, repr=False)
    """The recorder whose calls include these, which are those of a tool call."""
    tool_call_id: str | None = None
    _calls: list[ModelCall] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def is_replay(self) -> bool:
        """Whether no provider may be asked."""
        return self.player is not None and self.player.is_replay

    @property
    def takes_calls(self) -> bool:
        """Whether the calls of its context are its own: it has not ended, or refuses them."""
        whole = self.whole or self
        return not whole.is_ended or whole.refusal is not None

    def create_part(self, tool_call_id: str | None) -> TrafficRecorder:
        """Return a recorder of the calls that a tool makes, which are calls of this one, too."""
        return replace(self, whole=self, tool_call_id=tool_call_id, _calls=[])

    @cached_property
    def uncounted(self) -> TrafficRecorder:
        """The recorder of calls that are recorded and replayed, but are not the agent's."""
        return TrafficRecorder(self.clock, self.player, get_wait_s=self.get_wait_s)

    @property
    def calls(self) -> Sequence[ModelCall]:
        """The calls so far, in the order of their requests."""
        with self._lock:
            return tuple(self._calls)

    def start_call(self, message_format: Format, url: str, body: bytes) -> ModelCall:
        """Record a request; its `decide` says what happens to it."""
        address = url.partition("?")[0]
        return self.add_call(
            lambda number, owner: ModelCall(
                number, message_format, address, body, self.clock(), owner
            )
        )

    def add_call(self, build: Callable[[int, TrafficRecorder], Call]) -> Call:
        """Add the call that `build` returns for its number and recorder."""
        if self.whole is not None:
            call = self.whole.add_call(build)
            call.tool_call_id = self.tool_call_id
            self._calls.append(call)
            return call
        with self._lock:
            call = build(len(self._calls) + 1, self)
            self._calls.append(call)
        return call

    def decide(self, call: ModelCall) -> Decision:
        """Decide about a request: refused by a limit, replayed, delayed, or passed."""
        with self._lock:
            self.refusal = self.refusal or self.check_limits(self)
            if self.refusal is not None:
                return self._refuse(call, self.refusal)
            try:
                answer = None if self.player is None else self.player.find_answer(call)
            except MissingRecordingError as error:
                return self._refuse(call, str(error))
            if answer is not None:
                call.source = "replayed"
                return Decision(answer)
            return Decision(wait_s=wait_s) if (wait_s := self.get_wait_s(call)) > 0 else PASS

    def end_call(self, call: ModelCall, error: str | None = None) -> None:
        """End a call, store it if it was live, and report it; the first end counts."""
        with self._lock:
            if call.state != "open":
                return
            call.ended_s = self.clock()
            call.state = call.find_end_state(error)
            if call.state != "complete":
                call.error = error or call.error or ENDED_EARLY
            if self.player is not None and call.source == "live":
                self.player.store(call)
            self.on_call_ended(call)

    def finish(self, reason: str = EPISODE_ENDED) -> None:
        """End the episode: its open calls are broken, or failed without an answer."""
        with self._lock:
            self.is_ended = True
            for call in self._calls:
                call.end(reason)

    def _refuse(self, call: ModelCall, reason: str) -> Decision:
        call.state, call.error, call.ended_s = "refused", reason, self.clock()
        self.on_call_ended(call)
        return Decision(call.format.build_refusal(reason))
