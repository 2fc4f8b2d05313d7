"""The players of a cassette: they answer recorded model calls and tool calls, and store live ones.

In replay, `close_replay` refuses what no cassette can answer.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.engine.cassette.answers import UNREDACTABLE, Json, build_answer, dump_answer
from ci_agent_eval.engine.cassette.document import ToolRequest, TrafficRequest
from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.model_traffic import attribution, network_guard
from ci_agent_eval.model_traffic.formats.json_values import UnreadableTrafficError
from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.messages import ModelRequest
from ci_agent_eval.model_traffic.recorder import (
    ENDED_EARLY,
    READER_STOPPED,
    ModelCall,
    TrafficRecorder,
)

_TEMPORARY_STATUSES = frozenset({401, 402, 403, 407, 408, 409, 425, 429})
"""Errors that depend on more than the request; those of 500 and above do, too."""


_RECORDED_ENDS = frozenset({ENDED_EARLY, READER_STOPPED})
"""Errors of incomplete answers that a replay gives again as they are."""


@dataclass(eq=False)
class TrafficPlayer:
    """The `ModelCallPlayer` of a cassette session, shared by the recorders of an episode."""

    session: CassetteSession
    _numbers: dict[ModelCall, int] = field(default_factory=dict)
    """Numbers of the exchanges of calls."""

    @property
    def is_replay(self) -> bool:
        """Whether no provider may be asked."""
        return self.session.mode == "replay"

    def find_answer(self, call: ModelCall) -> HTTPAnswer | None:
        """Return the recorded answer; None if the provider must be asked.

        Raises CassetteMissError in replay.
        """
        if not call.url:  # its traffic, if it has any, is another call
            return None
        if call in self._numbers:  # asked again, after a wait for the rate limit
            return None
        request = self._build_request(call)
        try:
            number = self.session.find_exchange(request)
        except CassetteMissError as error:
            if isinstance(error.nearest, TrafficRequest):
                call.missed = _read_bodies(call, request.body, error.nearest.body)
            raise
        if number is None:
            self._numbers[call] = self.session.reserve_response(request)
            return None
        self._numbers[call] = number
        recording = self.session.recorded_take[number - 1].response
        call.recorded_latency_ms = recording.get("latency_ms")
        call.recorded_first_byte_ms = recording.get("first_byte_ms")
        return build_answer(recording)

    def store(self, call: ModelCall) -> None:
        """Store the answer of an ended live call, if another run would get it, too."""
        number = self._numbers.get(call)
        if number is None:
            return
        if not _depends_on_request(call):
            self.session.free_response(number)
            return
        try:
            _check_size(call)
            body = b"".join(call.chunks)
            answer = dump_answer(call.status or 0, call.headers, body, self.session.redact)
            self._check_binary_answer(call, answer)
        except ValueError as error:
            self.session.refusals.append(f"call {call.number} cannot be recorded: {error}")
            return
        moments = {"first_byte_ms": call.first_byte_s, "latency_ms": call.ended_s}
        for name, moment in moments.items():
            if moment is not None:
                answer[name] = convert_to_ms(moment - call.started_s)
        self.session.store_response(number, answer)

    def _check_binary_answer(self, call: ModelCall, entry: Json) -> None:
        """Raise ValueError if a secret is split between the parts of a binary answer."""
        if "base64" not in entry or call.answer is None:
            return
        texts = [call.answer.text, *(to_jsonable(c.arguments) for c in call.answer.tool_calls)]
        if self.session.redact(texts) != texts:
            raise ValueError(UNREDACTABLE)

    def _build_request(self, call: ModelCall) -> TrafficRequest:
        try:
            key = json.loads(call.format.build_key(call.url, call.body))
            body: Any = to_jsonable({"model": key["model"], **key["request"]})
        except UnreadableTrafficError:
            body = {"unreadable": f"sha256:{hashlib.sha256(call.body).hexdigest()}"}
        return TrafficRequest(
            call.format.name, self.session.normalize(_hash_files(body)), self._find_previous(call)
        )

    def _find_previous(self, call: ModelCall) -> int | None:
        """Return the number of the exchange with the answer that the request continues."""
        answer_id = None if call.request is None else call.request.previous_response_id
        if answer_id is None:
            return None
        for other, number in list(self._numbers.items()):  # other threads add calls
            if other.answer is not None and other.answer.id == answer_id:
                return number
        return None


def _read_bodies(call: ModelCall, *bodies: Json) -> tuple[ModelRequest, ...]:
    """Read requests of one format from a cassette; none if one of them is unreadable."""
    try:
        read = call.format.parse_request
        return tuple(read(call.url, json.dumps(body).encode()) for body in bodies)
    except UnreadableTrafficError:
        return ()


def _check_size(call: ModelCall) -> None:
    """Raise ValueError for a call that was not kept whole."""
    if call.is_cut:
        raise ValueError("its request or answer is larger than the recorder keeps")


def _depends_on_request(call: ModelCall) -> bool:
    """Return whether the provider would answer the request the same again."""
    if call.status is None or call.status in _TEMPORARY_STATUSES or call.status >= 500:
        return False
    if call.state != "complete" and call.error not in _RECORDED_ENDS:
        return False
    return call.status >= 400 or call.answer is None or call.answer.error is None


_FILE = re.compile(r"(?:data:[^,]{0,200};base64,)?[A-Za-z0-9+/_-]{512,}={0,2}")


def _hash_files(value: Any) -> Any:
    """Replace the content of files in a request by its hash."""
    if isinstance(value, str):
        is_file = len(value) >= 512 and _FILE.fullmatch(value) is not None
        return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}" if is_file else value
    if isinstance(value, dict):
        return {name: _hash_files(item) for name, item in value.items()}
    return [_hash_files(item) for item in value] if isinstance(value, list) else value


_ASKS_MODELS = "asks_models"
"""Name of the outcome of a call that asked a model."""


@dataclass(frozen=True)
class ToolPlayer:
    """Replays the tool calls of an episode, or records them.

    A tool whose call asks a model is called in replay, too: the model's answers are recorded.
    """

    session: CassetteSession

    @classmethod
    def find(cls, session: CassetteSession | None) -> ToolPlayer | None:
        """Return the player of an episode; None unless its tool calls are recorded."""
        if session is None or not session.has_tools or session.mode == "off":
            return None
        return cls(session)

    async def run_call(
        self,
        tool: str,
        arguments: object,
        call: Callable[[], Awaitable[Json]],
        has_asked_model: Callable[[], bool],
    ) -> Json:
        """Return the recorded outcome of a tool call, or that of `call`, which is then recorded.

        Raises CassetteMissError in replay.
        """
        session = self.session
        request = ToolRequest(tool, session.normalize(to_jsonable(arguments)))
        number = session.find_exchange(request)
        if number is not None:
            outcome = session.recorded_take[number - 1].response
            return await call() if _ASKS_MODELS in outcome else outcome
        number = session.reserve_response(request)
        outcome = await call()
        kept = {_ASKS_MODELS: True} if has_asked_model() else session.redact(outcome)
        session.store_response(number, kept)
        return outcome


_UNATTRIBUTED = (
    "a model call belongs to none of the running episodes for sure, so that no cassette can answer "
    "it; start the thread or task that makes it within the episode, or run one episode at a time"
)

_lock = threading.Lock()
_count = 0


@contextmanager
def close_replay(allowed_hosts: Collection[str] = ()) -> Iterator[None]:
    """Refuse connections beyond this machine, and model calls of no known episode.

    Such a call fails all running episodes, because it may be any one's.
    """
    global _count  # noqa: PLW0603 - the hooks are for the process
    with _lock:
        _count += 1
        if _count == 1:
            attribution.set_unattributed_recorder(
                TrafficRecorder(lambda: 0.0, on_call_ended=_fail_running, refusal=_UNATTRIBUTED)
            )
    try:
        with network_guard.refuse_connections(allowed_hosts):
            yield
    finally:
        with _lock:
            _count -= 1
            if _count == 0:
                attribution.set_unattributed_recorder(None)


def _fail_running(call: ModelCall) -> None:
    for recorder in attribution.list_running():
        if isinstance(recorder.player, TrafficPlayer):
            recorder.player.session.refusals.append(f"{call.error} ({call.url})")
