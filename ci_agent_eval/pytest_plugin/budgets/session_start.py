"""When the session of the main process began, which a budget of time counts from."""

from __future__ import annotations

import time

import pytest

from ci_agent_eval.pytest_plugin import options

WORKER_STARTED = "agent_eval_started"
"""Key of an xdist worker's input: when the main process's session began."""

_STARTED = pytest.StashKey[float]()

clock = time.monotonic
"""Shared by all processes of a machine."""


def get_start_time(config: pytest.Config) -> float:
    """Return when the main process's session began."""
    if options.is_worker(config):
        started: float = config.workerinput[WORKER_STARTED]  # type: ignore[attr-defined]
        return started
    return config.stash.setdefault(_STARTED, clock())
