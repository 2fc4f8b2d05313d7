"""Progress of a run, counted from its growing journals."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, build_episode_record
from ci_agent_eval.contract.results import JOURNAL_DIR, SESSION_NAME, JournalLine, Session
from ci_agent_eval.storage.regular_file import open_regular


@dataclass(frozen=True, slots=True)
class RunProgress:
    """Counts of the episodes that have ended."""

    finished: int = 0
    selected: int | None = None
    """None until the suite is collected."""
    failed: int = 0
    errors: int = 0
    violations: int = 0
    cost_usd: float = 0.0


@dataclass(slots=True)
class JournalTail:
    """Reads the new lines of a report folder's journals on each call."""

    report_dir: Path
    _offsets: dict[Path, int] = field(default_factory=dict)
    _ended: dict[tuple[str, str, int, int], EpisodeRecord] = field(default_factory=dict)
    _selected: int | None = None

    def progress(self) -> RunProgress:
        """Read new lines and return the current progress."""
        for journal in sorted((self.report_dir / JOURNAL_DIR).glob("*.jsonl")):
            self._read(journal)
        episodes = self._ended.values()
        return RunProgress(
            finished=len(episodes),
            selected=self._count_selected(),
            failed=sum(1 for episode in episodes if episode.outcome == "failed"),
            errors=sum(1 for episode in episodes if episode.outcome == "error"),
            violations=sum(len(episode.violations) for episode in episodes),
            cost_usd=math.fsum(_sum_cost(episode) for episode in episodes),
        )

    def _read(self, journal: Path) -> None:
        """Read the new complete lines of a journal."""
        try:
            with open_regular(journal) as file:
                file.seek(self._offsets.get(journal, 0))
                new, newline, _ = file.read().rpartition(b"\n")
        except OSError:
            return  # the loader reports it after the run
        self._offsets[journal] = self._offsets.get(journal, 0) + len(new) + len(newline)
        for raw in new.splitlines():
            self._count(raw)

    def _count(self, raw: bytes) -> None:
        try:
            line = JournalLine.model_validate_json(raw)
        except ValueError:
            return  # the loader reports it after the run
        if line.event == "ended":
            self._ended[line.episode.key] = build_episode_record(line.episode)

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
