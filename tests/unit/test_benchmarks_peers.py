"""`make bench-peers`: what is pure of it, and the two processes that measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from benchmarks.peers.episodes import Row
from benchmarks.peers.growth import Growth, Note
from benchmarks.peers.page import Measured, section
from benchmarks.peers.runners import BOUND, OURS, OURS_TWO, RUNNERS, Runner
from benchmarks.peers.runs import Failure, Figure

PEER = Runner("a peer", "peer", ("peer",))


def figure(seconds: float, cpu_seconds: float = 1.0) -> Figure:
    return Figure(seconds, cpu_seconds, peak_mb=70.0, processes=1, calls_at_once=50)


def row(runner: Runner, seconds: float, startup: float = 1.0) -> Row:
    return Row(runner, figure(startup, 0.5), figure(seconds + startup))


def growing(episodes: int, kept: int, cpu_ms: float = 5.0) -> Growth:
    """A run that keeps so many bytes of each, after a start that keeps much."""
    points = [episodes * n // 20 for n in range(21)]
    notes = [
        Note(n, 80_000_000 + 5_000_000 * (n > 0) + n * kept, 10 + n / 100, n * cpu_ms / 1000)
        for n in points
    ]
    return Growth(episodes, seconds=12.0, peak_mb=90.0, notes=notes)


def measured(**changed: object) -> Measured:
    fast = [row(BOUND, 2.0), row(OURS, 2.1), row(OURS_TWO, 1.2), row(PEER, 4.0)]
    found = Measured(
        machine="a machine",
        load=0.1,
        versions="Versions: peer 1.0.",
        capacities=[],
        episodes=200,
        fast=fast,
    )
    return replace(found, **changed)


def line(text: str, beginning: str) -> str:
    return next(x for x in text.splitlines() if x.startswith(f"| {beginning}"))


def test_the_start_up_is_taken_away_before_times_are_held_against_each_other():
    text = section(measured())

    assert line(text, "a peer").startswith("| a peer | 1.00 s | 4.00 s | 2.00 × | 1.90 × |")
    assert (
        line(text, "at most 1.1 ×")
        == "| at most 1.1 × the bound at concurrency 50 | 1.05 × | met |"
    )


def test_a_peer_that_is_faster_is_named():
    fast = [row(BOUND, 2.0), row(OURS, 2.1), row(OURS_TWO, 1.2), row(PEER, 2.05)]

    assert "**missed**: a peer 2.05 s" in line(section(measured(fast=fast)), "less time than")
    assert line(section(measured()), "less time than").endswith("| met |")


def test_ours_failing_is_no_target_met():
    broken = Row(OURS, figure(1), Failure("exit code 4: unrecognized arguments"))
    text = section(measured(fast=[row(BOUND, 2.0), broken, row(OURS_TWO, 1.2)]))

    assert line(text, "at most 1.1 ×").endswith("| not measured | **missed** |")
    assert line(text, "less time than").endswith("| not measured | **missed** |")


def test_growth_is_held_against_its_limits():
    fine = section(measured(growth=[growing(200, 3000), growing(20_000, 3000)]))
    assert line(fine, "memory grows").endswith("| 3.0 KB | met |")
    assert line(fine, "an episode costs the same").endswith("| 1.00 × | met |")

    worse = section(measured(growth=[growing(200, 3000), growing(20_000, 25_000, cpu_ms=9)]))
    assert line(worse, "memory grows").endswith("| 25.0 KB | **missed** |")
    assert line(worse, "an episode costs the same").endswith("| 1.80 × | **missed** |")


def test_the_suites_are_all_there():
    suites = [Path(word) for runner in RUNNERS for word in runner.command if "/suites/" in word]

    assert suites
    assert all(suite.is_file() for suite in suites)
