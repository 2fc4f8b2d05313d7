"""`make bench`: what comparing costs, and how often it is wrong; writes COMPARISON.md anew.

The false alarms are counted over suites in which nothing changed, by the very functions that
call a regression or a rise. Times are whole processes, from loading to the published comment.
"""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from data import write_results
from measure import ROOT, Figure, action, load_average, machine, median

from ci_agent_eval.analysis.comparison.findings import is_certain_increase
from ci_agent_eval.analysis.comparison.model import ComparePolicy, MetricChange
from ci_agent_eval.analysis.comparison.regressions import decide_regression
from ci_agent_eval.analysis.comparison.resampling import (
    IterationPair,
    compute_change_interval,
    compute_increase_p_value,
)
from ci_agent_eval.analysis.comparison.statistics import adjust_p_values, compute_drop_p_value
from ci_agent_eval.analysis.intervals import compute_wilson_interval

SUITES = 1000
SCENARIOS = 50
POLICY = ComparePolicy()
RATES = (0.5, 0.8, 0.9, 0.95, 1.0)
"""True pass rates, one drawn for each scenario, the same on both sides."""
SIZES = ((5, 5), (5, 50), (10, 100), (20, 200), (50, 50))
"""Iterations now, and in all runs of the baseline together."""
COST_SIZES = ((1, 1, 1), (1, 3, 3), (1, 5, 50), (2, 2, 2), (5, 5, 5), (20, 1, 1), (20, 5, 50))
"""Scenarios, and iterations of each now and in the baseline."""
SPREAD = 0.3
"""Of an iteration's cost: the standard deviation of its logarithm."""


def outcomes(now: int, before: int) -> Counter[str]:
    """Count the suites, none of which changed, with a regression, and with a drop asked about."""
    draw = random.Random(f"{now} {before}")
    found: Counter[str] = Counter()
    for _ in range(SUITES):
        found.update(_calls(draw, now, before))
    return found


def _calls(draw: random.Random, now: int, before: int) -> set[str]:
    counts = []
    for _ in range(SCENARIOS):
        rate = draw.choice(RATES)
        passed = [sum(draw.random() < rate for _ in range(size)) for size in (before, now)]
        counts.append((passed[0], before, passed[1], now))
    p_values = adjust_p_values([compute_drop_p_value(*found) for found in counts])
    return {decide_regression(c, p, POLICY) for c, p in zip(counts, p_values, strict=True)}


def alarm_rows() -> Iterator[str]:
    """Render a row for each pair of sizes."""
    for now, before in SIZES:
        found = outcomes(now, before)
        alarms, asked = found["regression"], found["undecided"]
        assert alarms / SUITES <= POLICY.level, f"{alarms} of {SUITES} suites at {now}, {before}"
        assert asked / SUITES <= POLICY.doubt, f"{asked} of {SUITES} suites at {now}, {before}"
        yield f"| {now} | {before} | {_share(alarms)} | {_share(asked)} |"


def _share(count: int) -> str:
    low, high = compute_wilson_interval(count, SUITES)
    return f"{count / SUITES:.1%} ({low:.1%} to {high:.1%})"


def cost_rows() -> Iterator[str]:
    """Render a row for each size of suite whose cost is compared."""
    for scenarios, now, before in COST_SIZES:
        draw = random.Random(f"{scenarios} {now} {before}")
        alarms = sum(_rises(draw, scenarios, now, before) for _ in range(SUITES))
        low, _ = compute_wilson_interval(alarms, SUITES)
        assert low <= POLICY.level, f"{alarms} of {SUITES} suites at {scenarios}, {now}, {before}"
        yield f"| {scenarios} | {now} | {before} | {_share(alarms)} |"


def _rises(draw: random.Random, scenarios: int, now: int, before: int) -> bool:
    """Say whether a rise is called, by any at all, of a suite whose cost is what it was."""
    pairs = []
    for _ in range(scenarios):
        usual = draw.lognormvariate(0, 1)
        sides = (
            tuple((usual * draw.lognormvariate(0, SPREAD),) for _ in range(size))
            for size in (before, now)
        )
        pairs.append(IterationPair(*sides))
    interval = compute_change_interval(pairs, "mean")
    p_value = compute_increase_p_value(pairs, "mean", 0.0)
    moved = MetricChange(1.0, 1.0, scenarios, scenarios, interval, p_value)
    return is_certain_increase(moved, 0.0, POLICY.level)


def timed(folder: Path, runs: int) -> Figure:
    """Measure 100 scenarios of 20 iterations, against so many runs of the base."""
    folder.mkdir()
    write_results(folder / "results.json", 2_000)
    for number in range(runs):
        (folder / f"base/run-{number}").mkdir(parents=True)
        write_results(folder / f"base/run-{number}/results.json", 2_000, every=211, run=number + 1)
    inputs = {"results": "results.json"} | ({"baseline": "base"} if runs else {})
    return median(lambda: action(folder, **inputs), 5)


def time_rows(folder: Path) -> Iterator[str]:
    """Render a row for each size of baseline."""
    for runs, remark in ((0, "no baseline"), (1, "target under 2 s"), (10, "the default's most")):
        figure = timed(folder / str(runs), runs)
        seconds, cpu = f"{figure.seconds:.2f} s", f"{figure.cpu:.2f} s"
        megabytes, load = f"{figure.megabytes:.0f} MB", load_average()
        yield f"| {runs} | {seconds} | {cpu} | {megabytes} | {load} | {remark} |"


def page(folder: Path) -> str:
    """Render the page that records the figures."""
    return "\n".join(
        [
            "# What comparing costs, and how often it is wrong",
            "",
            f"Measured by `make bench` on: {machine()}.",
            "",
            "## When nothing changed",
            "",
            f"{SUITES:,} suites of {SCENARIOS} scenarios in which nothing changed: each scenario's",
            f"true pass rate is drawn from {', '.join(map(str, RATES))} and is the same on both",
            "sides. A false alarm is a suite in which a regression is called, by Fisher's exact",
            f"test and Benjamini and Hochberg's procedure at {POLICY.level:g}. The rate is at most",
            "that level; it is lower, because exact tests of few iterations are careful. A suite",
            'is asked for more where any drop is left open, "not enough iterations to tell": at',
            f"most {POLICY.doubt:.0%} may be. Each share with its 95 % interval.",
            "",
            "| iterations now | in the baseline | suites with a false alarm | asked for more |",
            "|---:|---:|---:|---:|",
            *alarm_rows(),
            "",
            f"The same of cost, `max_cost_increase = 0`: {SUITES:,} suites whose scenarios cost",
            "what they did, each iteration a log-normal share more or less (a standard deviation",
            f"of {SPREAD:g}). The level is {POLICY.level:.0%}.",
            "",
            "| scenarios | iterations now | in the baseline | suites with a false alarm |",
            "|---:|---:|---:|---:|",
            *cost_rows(),
            "",
            "## Time",
            "",
            "100 scenarios of 20 iterations, load to published comment: whole processes, start-up",
            "and NumPy's import included; medians of 5. GitHub's fake is another process. Several",
            "runs of the base are read on both cores, so the CPU time is that of two processes.",
            "With a load average above the number of cores, wall times are of a busy machine.",
            "",
            "| runs of the base, 2,000 episodes | wall | CPU | peak memory | load | remark |",
            "|---:|---:|---:|---:|---|---|",
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
