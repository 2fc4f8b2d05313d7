"""Faults of a model's API on purpose, as the HTTP answers that clients get. Pure."""

from __future__ import annotations

from typing import Protocol

from ci_agent_eval.contract.faults import Fault
from ci_agent_eval.model_traffic.formats.protocol import HTTPAnswer
from ci_agent_eval.model_traffic.recorder import TrafficRecorder

_JSON = {"content-type": "application/json"}
_ANSWERS = {
    "rate_limit": HTTPAnswer(
        429,
        {**_JSON, "retry-after-ms": "1", "x-should-retry": "true"},
        (b'{"error": {"type": "rate_limit_error", "message": "injected fault"}}',),
    ),
    "cut_off": HTTPAnswer(200, _JSON, (b'{"id": "injected-fault", "choices": [{"mess',)),
}


class Faults(Protocol):
    """The faults of an episode, as its model traffic uses them."""

    @property
    def has_model_faults(self) -> bool:
        """Whether any is of the model."""

    def take(self, tool: None) -> Fault | None:
        """Count a call of the model; return its fault, if it has one."""


def add_faults(recorder: TrafficRecorder, faults: Faults, *, is_run: bool) -> None:
    """Let a recorder's calls have faults; in a run, the engine's requests for its agent, too."""
    if not faults.has_model_faults:
        return

    def find() -> HTTPAnswer | None:
        fault = faults.take(None)
        return None if fault is None else _ANSWERS[fault.kind]

    recorder.find_fault = find
    if is_run:
        recorder.find_own_fault = find
