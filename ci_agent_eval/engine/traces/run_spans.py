"""The OpenTelemetry spans of one run, which complete its model calls."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ci_agent_eval.contract.trajectory import Turn
from ci_agent_eval.engine.traces.traffic_spans import complete_traffic
from ci_agent_eval.engine.traces.trajectory import trajectory_from_spans
from ci_agent_eval.model_traffic.recorder import TrafficRecorder
from ci_agent_eval.model_traffic.trajectory import TrafficTrajectory, clean_call, limit_text

if TYPE_CHECKING:
    from ci_agent_eval.engine.traces.recorder import SpanRecording


@dataclass(eq=False)
class RunSpans:
    """Records the spans of a run if the program has set a provider of OpenTelemetry's SDK."""

    recorder: TrafficRecorder
    unmatched: int = 0
    """Model calls that only spans show."""
    _recording: SpanRecording | None = field(default=None, init=False)

    @contextmanager
    def record(self) -> Iterator[None]:
        """Record the spans of the `with` block."""
        if "opentelemetry.sdk.trace" not in sys.modules:
            yield
            return
        from ci_agent_eval.engine.traces.recorder import (  # noqa: PLC0415 - it needs the SDK
            record_run_spans,
        )

        with record_run_spans(lambda: len(self.recorder.calls)) as self._recording:
            yield

    def complete(self, found: TrafficTrajectory) -> TrafficTrajectory:
        """Return the trajectory of the model calls, completed by the spans so far."""
        if self._recording is None or not self._recording.spans:
            return found
        spans, enclosed = tuple(self._recording.spans), dict(self._recording.calls)
        completed = complete_traffic(found, self.recorder.calls, spans, enclosed)
        self.unmatched = completed.unmatched
        return completed.trajectory

    def read_answers(self) -> Sequence[Turn]:
        """Return the agent's turns from spans alone; empty if there is model traffic."""
        if self._recording is None or self.recorder.calls:
            return ()
        turns = trajectory_from_spans(self._recording.spans).agent_turns
        self.unmatched = len(turns)
        return [limit_turn(turn) for turn in turns]


def limit_turn(turn: Turn) -> Turn:
    """Return a turn of spans with texts of limited size; calls without a result are marked."""
    calls = tuple(map(clean_call, turn.tool_calls))
    return turn.model_copy(update={"content": limit_text(turn.content), "tool_calls": calls})
