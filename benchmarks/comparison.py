"""`make bench`: what comparing costs, and how often it is wrong; writes COMPARISON.md anew.

The false alarms are counted over suites in which nothing changed, by the very functions that
call a regression. Times are whole processes, from loading to the published comment.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from data import write_results
from measure import ROOT, Figure, action, machine, median

from ci_agent_eval.comparison.model import ComparePolicy
from ci_agent_eval.comparison.statistics import adjusted, p_value_of_drop
from ci_agent_eval.intervals import wilson

SUITES = 1000
SCENARIOS = 50
LEVEL = ComparePolicy().level
RATES = (0.5, 0.8, 0.9, 0.95, 1.0)
"""True pass rates, one drawn for each scenario, the same on both sides."""
SIZES = ((5, 5), (5, 50), (10, 100), (20, 200), (50, 50))
"""Iterations now, and in all runs of the baseline together."""


def false_alarms(now: int, before: int) -> int:
    """Count the suites, none of which changed, in which any regression is called."""
    draw = random.Random(f"{now} {before}")
    return sum(_alarms(draw, now, before) for _ in range(SUITES))


def _alarms(draw: random.Random, now: int, before: int) -> bool:
    p_values = []
    for _ in range(SCENARIOS):
        rate = draw.choice(RATES)
        passed = [sum(draw.random() < rate for _ in range(size)) for size in (before, now)]
        p_values.append(p_value_of_drop(passed[0], before, passed[1], now))
    return any(p_value < LEVEL for p_value in adjusted(p_values))


def alarm_rows() -> Iterator[str]:
    """Render a row for each pair of sizes."""
    for now, before in SIZES:
        alarms = false_alarms(now, before)
        low, high = wilson(alarms, SUITES)
        assert alarms / SUITES <= LEVEL, f"{alarms} of {SUITES} suites at {now}, {before}"
        rate = f"{alarms / SUITES:.1%} ({low:.1%} to {high:.1%})"
        yield f"| {now} | {before} | {alarms} of {SUITES:,} | {rate} |"


def timed(folder: Path, runs: int) -> Figure:
    """Measure 100 scenarios of 20 iterations, against so many runs of the base."""
    folder.mkdir()
    write_results(folder / "results.json", 2_000)
    for number in range(runs):
        (folder / f"base/run-{number}").mkdir(parents=True)
        write_results(folder / f"base/run-{number}/results.json", 2_000, every=211)
    inputs = {"results": "results.json"} | ({"baseline": "base"} if runs else {})
    return median(lambda: action(folder, **inputs), 5)


def time_rows(folder: Path) -> Iterator[str]:
    """Render a row for each size of baseline."""
    for runs, remark in ((0, "no baseline"), (1, "target under 2 s"), (10, "the default's most")):
        figure = timed(folder / str(runs), runs)
        seconds, megabytes = f"{figure.seconds:.2f} s", f"{figure.megabytes:.0f} MB"
        yield f"| {runs} | {seconds} | {megabytes} | {remark} |"


def page(folder: Path) -> str:
    """Render the page that records the figures."""
    return "\n".join(
        [
            "# What comparing costs, and how often it is wrong",
            "",
            f"Measured by `make bench` on: {machine()}.",
            "",
            "## False alarms",
            "",
            f"{SUITES:,} suites of {SCENARIOS} scenarios in which nothing changed: each scenario's",
            f"true pass rate is drawn from {', '.join(map(str, RATES))} and is the same on both",
            "sides. A suite counts if any regression is called in it, by Fisher's exact test and",
            f"Benjamini and Hochberg's procedure at {LEVEL:g}. The rate is at most that level; it",
            "is lower, because exact tests of few iterations are careful.",
            "",
            "| iterations now | in the baseline | suites with an alarm | rate (95 % interval) |",
            "|---:|---:|---:|---:|",
            *alarm_rows(),
            "",
            "## Time",
            "",
            "100 scenarios of 20 iterations, load to published comment: whole processes, start-up",
            "and SciPy's import included; medians of 5. GitHub's fake is a process of its own.",
            "",
            "| runs of the base, 2,000 episodes each | wall time | peak memory | remark |",
            "|---:|---:|---:|---|",
            *time_rows(folder),
            "",
        ]
    )


def main() -> None:
    """Measure, print and record."""
    with tempfile.TemporaryDirectory() as folder:
        text = page(Path(folder))
    print(text)
    (ROOT / "benchmarks/COMPARISON.md").write_text(text)


if __name__ == "__main__":
    main()
