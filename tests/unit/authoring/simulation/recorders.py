"""Recorders with a clock that advances by 0.1 s each time that it is read."""

from __future__ import annotations

import itertools

from ci_agent_eval.recording import EpisodeRecorder


def build_recorder(scenario_id="refund", **fields):
    ticks = itertools.count()
    return EpisodeRecorder(scenario_id, clock=lambda: next(ticks) / 10, **fields)
