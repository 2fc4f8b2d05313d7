"""A recorder whose episode is running, with the hooks installed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.recorder import TrafficRecorder


@contextmanager
def run_episode(**options) -> Iterator[TrafficRecorder]:
    """Run an episode: its recorder is bound to this context."""
    recorder = TrafficRecorder(time.monotonic, **options)
    with attribution.use_recorder(None):  # no run inside the episode of this context
        attribution.add_running(recorder)
    try:
        with attribution.use_recorder(recorder):
            yield recorder
    finally:
        attribution.remove_running(recorder)


@pytest.fixture
def hooked() -> Iterator[None]:
    attribution.take_unattributed()  # those of tests before
    with hooks.use():
        yield
    assert attribution.list_running() == ()
    attribution.take_unattributed()


@pytest.fixture
def recorder(hooked) -> Iterator[TrafficRecorder]:
    with run_episode() as recorder:
        yield recorder
