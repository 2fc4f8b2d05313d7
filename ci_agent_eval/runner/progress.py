"""Progress of a run, counted from its growing journals."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ci_agent_eval.analysis.failure_causes import CauseKey, FailureCause, find_episode_cause
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, build_episode_record
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import JOURNAL_DIR, SESSION_NAME, JournalLine, Session
from ci_agent_eval.storage.regular_file import open_regular

_EpisodeKey = tuple[str, str, int, int]


@dataclass(frozen=True, slots=True)
class EpisodeInProgress:
    """An episode that has started and not ended."""

    scenario_id: str
    iteration: int
    iterations: int
    elapsed_s: float
    """Seconds since its start was read."""


@dataclass(frozen=True, slots=True)
class FirstFailure:
    """A cause of failure with the scenario that first showed it."""

    scenario_id: str
    cause: FailureCause


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Counts of the episodes that have ended, and those that run."""

    finished: int = 0
    selected: int | None = None
    """None until the suite is collected."""
    failed: int = 0
    errors: int = 0
    violations: int = 0
    cost_usd: float = 0.0
    failed_scenarios: int = 0
    """Number of scenarios with a failed episode."""
    running: tuple[EpisodeInProgress, ...] = ()
    """The longest running first."""
    causes: tuple[FirstFailure, ...] = ()
    """The different causes of failures and errors so far, in the order of their first episode."""


@dataclass(slots=True)
class JournalTail:
    """Reads the new lines of a report folder's journals on each call; `clock` returns seconds."""

    report_dir: Path
    has_begun: Callable[[], bool] = lambda: True
    """Returns whether the run has begun; until then, the journals are of an earlier attempt."""
    clock: Callable[[], float] = time.monotonic
    _offsets: dict[Path, int] = field(default_factory=dict)
    _ended: dict[_EpisodeKey, EpisodeRecord] = field(default_factory=dict)
    _started: dict[_EpisodeKey, tuple[Episode, float]] = field(default_factory=dict)
    _causes: dict[CauseKey, FirstFailure] = field(default_factory=dict)
    _selected: int | None = None

    def progress(self) -> RunProgress:
        """Read new lines and return the current progress."""
        if not self.has_begun():
            return RunProgress()
        for journal in sorted((self.report_dir / JOURNAL_DIR).glob("*.jsonl")):
            for raw in self._read(journal):
                self._count(raw)
        episodes, now = self._ended.values(), self.clock()
        failed = [episode for episode in episodes if episode.outcome == "failed"]
        return RunProgress(
            finished=len(episodes),
            selected=self._count_selected(),
            failed=len(failed),
            errors=sum(1 for episode in episodes if episode.outcome == "error"),
            violations=sum(len(episode.violations) for episode in episodes),
            cost_usd=math.fsum(_sum_cost(episode) for episode in episodes),
            failed_scenarios=len({(one.scenario_id, one.agent) for one in failed}),
            running=tuple(
                EpisodeInProgress(one.scenario_id, one.iteration, one.iterations, now - since)
                for one, since in self._started.values()
            ),
            causes=tuple(self._causes.values()),
        )

    def _read(self, path: Path) -> Sequence[bytes]:
        """Read the new complete lines of a file."""
        try:
            with open_regular(path) as file:
                file.seek(self._offsets.get(path, 0))
                new, newline, _ = file.read().rpartition(b"\n")
        except OSError:
            return ()  # the loader reports it after the run
        self._offsets[path] = self._offsets.get(path, 0) + len(new) + len(newline)
        return new.splitlines()

    def _count(self, raw: bytes) -> None:
        Episode.model_rebuild()  # once, and not again in each model that holds episodes
        try:
            line = JournalLine.model_validate_json(raw)
        except ValueError:
            return  # the loader reports it after the run
        key = line.episode.key
        if line.event == "started":
            if key not in self._ended:
                self._started.setdefault(key, (line.episode, self.clock()))
            return
        self._started.pop(line.started_key or key, None)
        self._ended[key] = record = build_episode_record(line.episode)
        if (cause := find_episode_cause(record)) is not None:
            self._causes.setdefault(cause.key, FirstFailure(record.scenario_id, cause))

    def _count_selected(self) -> int | None:
        if self._selected is None:
            try:
                with open_regular(self.report_dir / SESSION_NAME) as file:
                    self._selected = Session.model_validate_json(file.read()).selected
            except (OSError, ValueError):
                return None
        return self._selected


def _sum_cost(episode: EpisodeRecord) -> float:
    others = [used.cost_usd for used in (episode.judge, episode.simulated_user) if used]
    return math.fsum(cost for cost in (episode.cost_usd, *others) if cost is not None)
