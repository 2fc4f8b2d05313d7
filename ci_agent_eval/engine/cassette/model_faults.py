"""Faults on purpose of a model that is on a cassette.

The request goes down to the model's client and ends at its first HTTP request without a fault,
where the cassette answers. So retries and fallback models act as in the recorded run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from ci_agent_eval.engine.cassette.canonical import CanonicalRequest, Json
from ci_agent_eval.engine.cassette.misses import CassetteMissError
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.model_traffic import attribution
from ci_agent_eval.model_traffic.formats.protocol import HTTPAnswer
from ci_agent_eval.model_traffic.recorder import TrafficRecorder

_WATCHED = tuple(
    f"pydantic_ai.models.{name}"
    for name in ("anthropic", "bedrock", "google", "groq", "mistral", "openai")
)
"""Modules of the models whose requests the hooks see; nothing would stop one by gRPC in replay."""

_is_passing: ContextVar[bool] = ContextVar("ci_agent_eval_passing_faults", default=False)


class RequestEnd(BaseException):
    """Ends a request where it would ask the provider; clients catch and repeat only Exceptions."""


@dataclass
class CassetteExchange:
    """A request's place in the cassette: its recorded response, or the number of a live one."""

    session: CassetteSession
    request: CanonicalRequest
    recording: Json | None = None
    number: int | None = None
    miss: CassetteMissError | None = None

    def look_up(self) -> None:
        """Find the recorded response, or reserve a place. Raises CassetteMissError in replay."""
        if self.recording is not None or self.number is not None:
            return
        self.recording = self.session.find_response(self.request)
        if self.recording is None:
            self.number = self.session.reserve_response(self.request)

    def end_unless_live(self) -> None:
        """Look the response up; raise RequestEnd unless the provider must be asked."""
        if self.miss is None:
            try:
                self.look_up()
            except CassetteMissError as error:
                self.miss = error
        if self.number is None:
            raise RequestEnd

    def store(self, response: Json) -> None:
        """Store a live response."""
        assert self.number is not None  # noqa: S101 - only after `look_up`
        self.session.store_response(self.number, response)


def find_fault_source(model: Model) -> Callable[[], HTTPAnswer | None] | None:
    """Return the function that finds the fault of a request of this context's run.

    None: its model has no faults, or no client that could get them.
    """
    run = attribution.get_bound_recorder()
    return None if run is None or not _is_watched(model) else run.find_own_fault


@contextmanager
def pass_faults(
    find_fault: Callable[[], HTTPAnswer | None], exchange: CassetteExchange
) -> Iterator[None]:
    """Let the HTTP requests of the `with` block have faults; those without may end the request."""

    def find() -> HTTPAnswer | None:
        fault = find_fault()
        if fault is None:
            exchange.end_unless_live()
        return fault

    # Some models of a replay are not observed, and so ask through this recorder.
    recorder = TrafficRecorder(lambda: 0.0, find_fault=find, find_own_fault=find)
    token = _is_passing.set(True)
    try:
        with attribution.suspend_recording(False), attribution.use_recorder(recorder):
            yield
    finally:
        _is_passing.reset(token)


def is_passing_faults() -> bool:
    """Return whether a request of this context gets only faults and recorded responses."""
    return _is_passing.get()


def _is_watched(model: Model) -> bool:
    while isinstance(model, WrapperModel):
        model = model.wrapped
    if isinstance(model, FallbackModel):
        return all(map(_is_watched, model.models))
    return any(kind.__module__.startswith(_WATCHED) for kind in type(model).__mro__)
