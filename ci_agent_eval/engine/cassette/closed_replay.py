"""The closure of a replay: what no cassette can answer is refused."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from ci_agent_eval.engine.cassette.traffic_player import TrafficPlayer
from ci_agent_eval.model_traffic import attribution, network_guard
from ci_agent_eval.model_traffic.recorder import ModelCall, TrafficRecorder

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
