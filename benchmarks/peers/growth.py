"""What an episode costs as there are more of them, and what stays in memory of it."""

from __future__ import annotations

import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from .capacity import ModelProcess
from .runners import AT_ONCE, OURS, SUITES, peer_python, pytest
from .runs import Failure, environment, run, timeout_for

SETTLED = 0.1
"""Of a run: what is loaded until then is loaded once, and no growth."""


class Note(NamedTuple):
    """What the process held and had used when so many episodes had finished."""

    finished: int
    resident: int
    """Bytes."""
    wall: float
    cpu: float


@dataclass(frozen=True)
class Growth:
    """A run of so many episodes."""

    episodes: int
    seconds: float
    """Of the whole process."""
    peak_mb: float
    notes: Sequence[Note]

    @property
    def wall_ms(self) -> float:
        """Milliseconds of the wall for each episode, start-up and collection apart."""
        return (self.notes[-1].wall - self.notes[0].wall) / self.episodes * 1000

    @property
    def cpu_ms(self) -> float:
        """Milliseconds of the processor for each episode, start-up and collection apart."""
        return (self.notes[-1].cpu - self.notes[0].cpu) / self.episodes * 1000

    @property
    def kept_kb(self) -> float:
        """Kilobytes that each further episode left resident: the slope over the notes."""
        return kept_kb(self.notes)


def kept_kb(notes: Sequence[Note]) -> float:
    """Return by how many kilobytes the process grew for each episode, once it had settled."""
    last = notes[-1].finished
    settled = [note for note in notes if note.finished >= last * SETTLED]
    slope = statistics.linear_regression(
        [note.finished for note in settled], [note.resident for note in settled]
    ).slope
    return slope / 1000


def with_notes(command: Sequence[str]) -> list[str]:
    """Return the command with the plugin that notes."""
    *rest, suite = command
    return [*rest, "-p", "growth_notes", suite]


EMPTY = pytest(peer_python("pytest"), "test_empty.py")
"""pytest alone: empty tests."""


def measured_growth(
    sizes: Sequence[int], server: ModelProcess, say: Callable[[str], None]
) -> list[Growth | Failure]:
    """Run ours with each of these numbers of episodes."""
    found = []
    for episodes in sizes:
        say(f"{episodes:,} episodes")
        found.append(one_growth(OURS.command, server.url, episodes))
    return found


def one_growth(command: Sequence[str], url: str, episodes: int) -> Growth | Failure:
    """Run so many episodes and read the notes."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        env = environment(
            folder,
            BENCH_URL=url,
            BENCH_EPISODES=str(episodes),
            BENCH_AT_ONCE=str(AT_ONCE),
            PYTHONPATH=str(SUITES),
        )
        result, _ = run(with_notes(command), folder, env, timeout_for(episodes))
        if isinstance(result, Failure):
            return result
        notes = [Note(*row) for row in json.loads((folder / "notes.json").read_text("utf-8"))]
    return Growth(episodes, result.seconds, result.peak_mb, notes)
