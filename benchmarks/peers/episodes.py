"""The episodes, side by side: start-ups, then rounds in turns, then a slow model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from .capacity import ModelProcess
from .runners import BOUND, OURS, OURS_TWO, RUNNERS, Runner
from .runs import CALLS, Failure, Figure, Result, in_new_folder, median

Say = Callable[[str], None]
WAVES = 5
"""With a slow model, a runner of few at once runs so many episodes for each that it can."""
SLOW_AT_ONCE = 25
"""Whoever runs fewer at once is one of those."""


@dataclass(frozen=True)
class Row:
    """A runner and what it took; of the start-up, only what is not the model's delay."""

    runner: Runner
    startup: Result
    result: Result
    scale: int = 1
    """By how many the run's time was multiplied, because fewer episodes ran."""

    @property
    def seconds(self) -> float | None:
        """Seconds of the episodes, start-up apart; None if it failed."""
        if isinstance(self.result, Failure) or isinstance(self.startup, Failure):
            return None
        return (self.result.seconds - self.startup.seconds) * self.scale

    @property
    def cpu_seconds(self) -> float | None:
        """As `seconds`, of the processor."""
        if isinstance(self.result, Failure) or isinstance(self.startup, Failure):
            return None
        return (self.result.cpu_seconds - self.startup.cpu_seconds) * self.scale


def startups(
    server: ModelProcess, runners: Sequence[Runner], delay_s: float, say: Say
) -> dict[str, Result]:
    """Run one episode with each, as often as its rounds are; take the model's delay away."""
    found: dict[str, Result] = {}
    for runner in runners:
        say(f"start-up of {runner.name}")
        runs = [in_new_folder(runner.command, server, 1, 1) for _ in range(runner.rounds)]
        found[runner.name] = without_delay(median(runs), delay_s)
    return found


def without_delay(result: Result, delay_s: float) -> Result:
    """Return what is left of a run of one episode when the model's delays are taken away."""
    if isinstance(result, Failure):
        return result
    return replace(result, seconds=max(0.0, result.seconds - CALLS * delay_s))


def measured_rounds(
    server: ModelProcess,
    starting: dict[str, Result],
    episodes: int,
    say: Say,
    *,
    rounds: int,
) -> list[Row]:
    """Run the episodes in rounds; which goes first changes with each."""
    results: dict[str, list[Result]] = {runner.name: [] for runner in RUNNERS}
    for number in range(rounds):
        taking_part = [runner for runner in RUNNERS if runner.rounds > number]
        for runner in taking_part[:: 1 if number % 2 else -1]:
            say(f"{episodes} episodes, round {number + 1}: {runner.name}")
            results[runner.name].append(
                in_new_folder(runner.command, server, episodes, runner.at_once)
            )
    return [Row(r, starting[r.name], median(results[r.name])) for r in RUNNERS]


def measured_slow(
    server: ModelProcess, starting: dict[str, Result], episodes: int, say: Say
) -> list[Row]:
    """Run the episodes once with a slow model; runners of few at once run fewer of them."""
    rows = []
    for runner in (runner for runner in RUNNERS if runner.slow):
        few = runner.at_once < SLOW_AT_ONCE
        number = min(episodes, runner.at_once * WAVES) if few else episodes
        say(f"{number} episodes of a slow model: {runner.name}")
        result = in_new_folder(runner.command, server, number, runner.at_once)
        rows.append(scaled(Row(runner, starting[runner.name], result), episodes, number))
    return rows


def scaled(row: Row, episodes: int, run: int) -> Row:
    """Say by how many the time of so many that were run is multiplied."""
    return replace(row, scale=episodes // run)


def measured_many(
    server: ModelProcess, starting: dict[str, Result], episodes: int, rounds: int, say: Say
) -> list[Row]:
    """Run many episodes with the bound and with ours, on one core and on two."""
    three = (BOUND, OURS, OURS_TWO)
    results: dict[str, list[Result]] = {runner.name: [] for runner in three}
    for number in range(rounds):
        for runner in three[:: 1 if number % 2 else -1]:
            say(f"{episodes} episodes, round {number + 1}: {runner.name}")
            results[runner.name].append(
                in_new_folder(runner.command, server, episodes, runner.at_once)
            )
    return [Row(r, starting[r.name], median(results[r.name])) for r in three]


def figure_of(rows: Sequence[Row], name: str) -> Row:
    """Return the row of a runner."""
    return next(row for row in rows if row.runner.name == name)


def ratio(one: Row, other: Row) -> float | None:
    """Return how many times as long one took as the other, start-up apart.

    None if one failed, or if the start-up took as long as the episodes, which only says that
    the machine had other work.
    """
    return _quotient(one.seconds, other.seconds)


def cpu_ratio(one: Row, other: Row) -> float | None:
    """As `ratio`, of the processor."""
    return _quotient(one.cpu_seconds, other.cpu_seconds)


def _quotient(one: float | None, other: float | None) -> float | None:
    if one is None or other is None or min(one, other) <= 0:
        return None
    return one / other


def measured_figure(row: Row) -> Figure | None:
    """Return the figure of a row that did not fail."""
    if isinstance(row.result, Failure) or isinstance(row.startup, Failure):
        return None
    return row.result
