"""A recorder whose clock advances by a fixed step each time it is read."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ci_agent_eval.recording import EpisodeRecorder, build_initial_episode


def stepping_clock(step: float = 0.1) -> Callable[[], float]:
    """Each look at the clock is a step later than the one before."""
    steps = itertools.count()
    return lambda: next(steps) * step


def a_recorder(**fields: Any) -> EpisodeRecorder:
    clock, locate = fields.pop("clock", stepping_clock()), fields.pop("locate", lambda: None)
    return EpisodeRecorder(build_initial_episode("refund", **fields), clock=clock, locate=locate)
