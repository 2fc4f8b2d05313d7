"""The cassette of an episode's model traffic: answers recorded calls and stores live ones."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.engine.cassette.canonical import Json
from ci_agent_eval.engine.cassette.player_session import PlayerSession
from ci_agent_eval.engine.cassette.traffic_answer import (
    UNREDACTABLE,
    build_answer,
    dump_answer,
)
from ci_agent_eval.engine.cassette.traffic_request import TrafficRequest
from ci_agent_eval.model_traffic.formats.protocol import HTTPAnswer, UnreadableTrafficError
from ci_agent_eval.model_traffic.recorder import ENDED_EARLY, READER_STOPPED, ModelCall

_is_recorded_above: ContextVar[bool] = ContextVar("ci_agent_eval_recorded_above", default=False)

_TEMPORARY_STATUSES = frozenset({401, 402, 403, 407, 408, 409, 425, 429})
"""Errors that depend on more than the request; those of 500 and above do, too."""


_RECORDED_ENDS = frozenset({ENDED_EARLY, READER_STOPPED})
"""Errors of incomplete answers that a replay gives again as they are."""


@contextmanager
def suspend_players() -> Iterator[None]:
    """Neither replay nor store the traffic in the `with` block: a CassetteModel records it."""
    token = _is_recorded_above.set(True)
    try:
        yield
    finally:
        _is_recorded_above.reset(token)


@dataclass(eq=False)
class TrafficPlayer:
    """The `ModelCallPlayer` of a cassette session, shared by the recorders of an episode."""

    session: PlayerSession
    _numbers: dict[ModelCall, int | None] = field(default_factory=dict)
    """Numbers of the exchanges of calls; None: a CassetteModel records the call."""

    @property
    def is_replay(self) -> bool:
        """Whether no provider may be asked."""
        return self.session.mode == "replay"

    def find_answer(self, call: ModelCall) -> HTTPAnswer | None:
        """Return the recorded answer; None if the provider must be asked.

        Raises CassetteMissError in replay.
        """
        if call in self._numbers:  # asked again, after a wait for the rate limit
            return None
        if _is_recorded_above.get():
            self._numbers[call] = None
            return None
        request = self._build_request(call)
        number = self.session.find_exchange(request)
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
