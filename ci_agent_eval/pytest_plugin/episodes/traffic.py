"""The model calls of a test's own code, which become turns of its episode."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import Lock
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.contract.clock import read_clock
from ci_agent_eval.pytest_plugin.episodes import agents
from ci_agent_eval.recording import EpisodeRecorder
from ci_agent_eval.recording.active_episode import get_active_episode

if TYPE_CHECKING:
    from ci_agent_eval.engine.cassette import CassetteSession
    from ci_agent_eval.engine.rate_limits import RateWindows
    from ci_agent_eval.model_traffic.recorder import TrafficRecorder

WINDOWS = pytest.StashKey[Any]()
"""Returns the rate limits of a model API's address."""

CLIENTS = frozenset({"aiohttp", "dspy._vendor.lm15.transports", "httpx", "httpx2", "urllib3"})
"""The HTTP clients that the hooks watch; without one there is no traffic to watch."""


_RUNS = frozenset({"_agent_eval_run", "aitest_run", "llm_assert", "llm_score", "simulation"})
"""Fixtures that use the engine."""


def import_before(items: Sequence[pytest.Item]) -> None:
    """Import what the episodes will need, unless they are scripted."""
    has_runs = any(not _RUNS.isdisjoint(getattr(item, "fixturenames", ())) for item in items)
    if not has_runs and CLIENTS.isdisjoint(sys.modules):
        return
    from ci_agent_eval.engine.session import import_before_episodes  # noqa: PLC0415 - inert until used

    import_before_episodes(has_runs=has_runs)


@contextmanager
def watch_model_calls(
    item: pytest.Item, recorder: EpisodeRecorder, clock: Callable[[], float]
) -> Iterator[None]:
    """Record the model calls of an episode from its setup to its teardown."""
    with agents.open_cassette(item, recorder) as cassette:
        watch = _EpisodeWatch(item.config, recorder, clock, cassette)
        recorder.is_watched = True
        _client_imports.add(watch)
        try:
            yield
        finally:
            _client_imports.remove(watch)
            watch.stop()


@dataclass(eq=False)
class _EpisodeWatch:
    config: pytest.Config
    recorder: EpisodeRecorder
    clock: Callable[[], float]
    cassette: CassetteSession | None
    _calls: TrafficRecorder | None = None

    def start(self) -> None:
        from ci_agent_eval.engine.traffic import TrafficRates, watch_episode  # noqa: PLC0415 - inert until used
        from ci_agent_eval.model_traffic import attribution, hooks  # noqa: PLC0415 - as above

        rates = TrafficRates(_get_windows(self.config))
        self._calls = watch_episode(self.recorder, self.clock, rates).recorder
        self._calls.player = None if self.cassette is None else self.cassette.player
        hooks.install()
        attribution.add_lookup(_find_active_recorder)
        attribution.add_running(self._calls)

    def stop(self) -> None:
        if self._calls is None:
            return
        from ci_agent_eval.model_traffic import attribution, hooks  # noqa: PLC0415 - as above

        attribution.remove_running(self._calls)
        hooks.uninstall()


class _ClientImports(MetaPathFinder):
    """Starts to watch when the first HTTP client is imported: most scripted suites import none.

    That may be in any thread; `sys.modules` has the client only after the waiting watches started.
    """

    def __init__(self) -> None:
        self._waiting: list[_EpisodeWatch] = []
        self._is_imported = False
        self._lock = Lock()

    def add(self, watch: _EpisodeWatch) -> None:
        """Start a watch now or, before the import of a client, with it."""
        with self._lock:
            is_imported = self._is_imported or not CLIENTS.isdisjoint(sys.modules)
            if not is_imported:
                self._waiting.append(watch)
        if is_imported:
            watch.start()
            return
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def remove(self, watch: _EpisodeWatch) -> None:
        """Forget a watch that has not started."""
        if watch in self._waiting:
            self._waiting.remove(watch)
        if not self._waiting and self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Start the waiting watches before a client is imported."""
        if fullname not in CLIENTS or not self._waiting:
            return None
        with self._lock:
            waiting, self._waiting, self._is_imported = self._waiting, [], True
        for watch in waiting:
            watch.start()
        # The import goes on after this finder, but the one of the hooks is now before it.
        found = (finder.find_spec(fullname, path, target) for finder in tuple(sys.meta_path))
        return next((spec for spec in found if spec is not None), None)


_client_imports = _ClientImports()


def _find_active_recorder() -> TrafficRecorder | None:
    """Return the recorder of the active episode."""
    episode = get_active_episode()
    recorder = None if episode is None else episode.recorder
    traffic = None if recorder is None else recorder.recorded_turns.traffic
    return None if traffic is None else traffic.recorder


@contextmanager
def serve_subprocesses(recorder: EpisodeRecorder) -> Iterator[Mapping[str, str]]:
    """Yield the variables of subprocesses whose model calls belong to the episode."""
    from ci_agent_eval.model_traffic.gateway.server import (  # noqa: PLC0415 - inert until used
        serve_episode,
    )

    traffic = recorder.recorded_turns.traffic
    assert traffic is not None  # noqa: S101 - the gateway imports an HTTP client
    with serve_episode(traffic.recorder, os.environ) as address:
        yield address.build_environment()


def _get_windows(config: pytest.Config) -> Callable[[str], RateWindows]:
    if WINDOWS in config.stash:
        known: Callable[[str], RateWindows] = config.stash[WINDOWS]
        return known
    from ci_agent_eval.engine.rate_limits import RateWindows  # noqa: PLC0415 - as above

    windows = functools.cache(lambda _: RateWindows(read_clock))
    config.stash[WINDOWS] = windows
    return windows
