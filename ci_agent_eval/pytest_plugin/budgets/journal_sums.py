"""What the other processes of a run have spent: the sum over the journals that they write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import JournalLine
from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.storage.regular_file import open_regular
from ci_agent_eval.storage.run_folder import EpisodeKey, ReportFolder


@dataclass(frozen=True, slots=True)
class UnreadableJournal:
    """A journal that cannot be read, so that the run must stop: its episodes may cost anything."""

    path: str
    problem: str

    @property
    def sentence(self) -> str:
        """Description of the problem, and what to do."""
        return (
            f"the budgets of the suite cannot be checked: {self.path} {self.problem}; run the "
            "suite again, and let nothing else write to the report directory"
        )


@dataclass(slots=True)
class RecordedSpending:
    """The spending of episodes, by their last records."""

    _spent: dict[EpisodeKey, Usage] = field(default_factory=dict)
    _ended: set[EpisodeKey] = field(default_factory=set)

    def add(self, lines: Iterable[JournalLine]) -> None:
        """Add records in their order; an `ended` one counts before `started` ones."""
        for line in lines:
            key = line.episode.key
            if line.event == "ended":
                self._ended.add(key)
            elif key in self._ended:
                continue
            self._spent[key] = measure_spending(line.episode)

    def sum(self) -> Usage:
        """Return the spending of all episodes."""
        return sum(self._spent.values(), Usage())


def measure_spending(episode: Episode) -> Usage:
    """Return what an episode has spent; agents of a skipped episode do not count."""
    trajectory = None if episode.outcome == "skipped" else episode.trajectory
    turns = () if trajectory is None else trajectory.turns
    return Usage.from_turns(turns, episode.judge, episode.simulated_user)


@dataclass(slots=True)
class JournalReader:
    """Reads the journals of all processes but one, each time only their new lines."""

    folder: ReportFolder
    own: Path
    """The journal of the process that asks."""
    _offsets: dict[Path, int] = field(default_factory=dict)
    _spending: RecordedSpending = field(default_factory=RecordedSpending)

    def read(self) -> Usage | UnreadableJournal:
        """Return what the other processes have spent so far."""
        for path in {*self.folder.list_journals(), *self._offsets} - {self.own}:
            try:
                self._spending.add(self._read_new_lines(path))
            except OSError as error:
                return UnreadableJournal(str(path), f"cannot be read ({error.strerror})")
            except ValueError:  # includes pydantic's ValidationError
                return UnreadableJournal(str(path), "has a line that is no record of an episode")
        return self._spending.sum()

    def _read_new_lines(self, path: Path) -> list[JournalLine]:
        """Read the new complete lines. Raises OSError and ValueError."""
        start = self._offsets.get(path, 0)
        with open_regular(path) as file:
            file.seek(start)
            new, newline, _ = file.read().rpartition(b"\n")
        lines = [JournalLine.model_validate_json(raw) for raw in new.splitlines()]
        self._offsets[path] = start + len(new) + len(newline)
        return lines
