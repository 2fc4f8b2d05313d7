"""Faults of a model's API on purpose, as the HTTP answers that clients get. Pure."""

from __future__ import annotations

from collections.abc import Callable

from ci_agent_eval.contract.episode import Fault
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


def add_faults(
    recorder: TrafficRecorder, take: Callable[[None], Fault | None], *, is_run: bool
) -> None:
    """Let a recorder's calls have faults; in a run, the engine's requests for its agent, too."""

    def find() -> HTTPAnswer | None:
        fault = take(None)
        return None if fault is None else _ANSWERS[fault.kind]

    recorder.find_fault = find
    if is_run:
        recorder.find_own_fault = find
