"""`make bench`: what comparing costs, and how often it is wrong; writes COMPARISON.md anew.

The false alarms are counted over suites in which nothing changed, by the very functions that
call a regression or a rise. Times are whole processes, from loading to the published comment.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from adaptive import render_adaptive_section, shift_rate
from behaviour import behaviour_section
from data import write_results
from measure import ROOT, Figure, action, format_share, load_average, machine, median
from metric_ratios import render_metric_sections
from red_suites import SuiteDrops, find_drops
from red_tables import render_red_sections

from ci_agent_eval.analysis.comparison.confirmation import BLOCKS, SAMPLE_ITERATIONS
from ci_agent_eval.analysis.comparison.confirmation import ITERATIONS as ITERATIONS_AGAIN
from ci_agent_eval.analysis.comparison.model import ComparePolicy
from ci_agent_eval.analysis.comparison.run_variation import PassCounts, ScenarioCounts

SUITES = 400
SCENARIOS = 50
POLICY = ComparePolicy()
VARIATIONS = (
    ("none", 0.0, 0.0),
    ("scenario ±11", 1.0, 0.0),
    ("day ±11", 0.0, 1.46),
)
"""Name, and standard deviations of a run's shift in logits: of each scenario, and of the suite."""
Change = Callable[[list[float]], list[float]]
"""Returns the true rates of the head."""


@dataclass(frozen=True)
class Suite:
    """A simulated suite: its size, and how its runs vary."""

    runs: int
    iterations: int
    scenario: float = 0.0
    day: float = 0.0

    def count_confirmed(self, change: Change = lambda rates: rates) -> tuple[int, int]:
        """Count the suites that are red by the comparison, and those confirmed on the base."""
        draw = random.Random(f"{self} confirmed")
        red = confirmed = 0
        for _ in range(SUITES):
            rates, suite = self._compare(draw, change)
            drops = find_drops(suite, POLICY.level)
            red += any(drops)
            confirmed += any(drops) and self._confirms(draw, rates, change, drops)
        return red, confirmed

    def _confirms(
        self, draw: random.Random, rates: list[float], change: Change, drops: SuiteDrops
    ) -> bool:
        """Run both sides again, which share the shift of that day."""
        day = draw.gauss(0, self.day) if self.day else 0.0
        shifts = [day + draw.gauss(0, self.scenario) for _ in rates]
        again: dict[int, ScenarioCounts] = {}
        sides = [list(map(shift_rate, side, shifts)) for side in (rates, change(rates))]
        for number, pair in enumerate(zip(*sides, strict=True)):
            size = ITERATIONS_AGAIN if number in drops.scenarios else SAMPLE_ITERATIONS
            if number in drops.scenarios or drops.whole:
                before, after = (_draw(draw, rate, BLOCKS * size) for rate in pair)
                again[number] = ScenarioCounts((before,), after)
        doubted = [again[number] for number in drops.scenarios]
        return bool(find_drops(doubted, POLICY.level, interleaved=True).scenarios) or (
            drops.whole and find_drops(list(again.values()), POLICY.level, interleaved=True).whole
        )

    def _compare(
        self, draw: random.Random, change: Change
    ) -> tuple[list[float], list[ScenarioCounts]]:
        """Draw the true rates of the base, and the counts of its runs and of the head."""
        half = SCENARIOS // 2
        rates = [1 - draw.betavariate(1, 60) for _ in range(half)]
        rates += [draw.betavariate(6, 1.2) for _ in range(SCENARIOS - half)]
        before = [self._run(draw, rates) for _ in range(self.runs)]
        after = self._run(draw, change(rates))
        return rates, [
            ScenarioCounts(tuple(runs), now) for *runs, now in zip(*before, after, strict=True)
        ]

    def _run(self, draw: random.Random, rates: list[float]) -> list[PassCounts]:
        day = draw.gauss(0, self.day) if self.day else 0.0
        shifted = [shift_rate(rate, day + draw.gauss(0, self.scenario)) for rate in rates]
        return [_draw(draw, rate, self.iterations) for rate in shifted]


def _draw(draw: random.Random, rate: float, size: int) -> PassCounts:
    return PassCounts(sum(draw.random() < rate for _ in range(size)), size)


def _drop(points: float, count: int) -> Change:
    return lambda rates: [max(r - points, 0.0) for r in rates[:count]] + rates[count:]


CONFIRMED: tuple[tuple[str, Change], ...] = (
    ("nothing", lambda rates: rates),
    ("−10 points everywhere", _drop(0.1, SCENARIOS)),
    ("−20 points everywhere", _drop(0.2, SCENARIOS)),
    ("−40 points in five scenarios", _drop(0.4, 5)),
)


def confirmation_rows() -> Iterator[str]:
    """Render a row for each change, variation and size, without and with a confirmation."""
    for change, apply in CONFIRMED:
        for runs, iterations in ((1, 5), (1, 20), (10, 20)):
            for name, scenario, day in VARIATIONS:
                found = Suite(runs, iterations, scenario, day).count_confirmed(apply)
                shares = " | ".join(format_share(count, SUITES) for count in found)
                yield f"| {change} | {name} | {runs} | {iterations} | {shares} |"


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
            *render_red_sections(),
            "## Confirmed on the base",
            "",
            f"{SUITES:,} suites of {SCENARIOS} scenarios: half with pass rates of 1 - Beta(1, 60),",
            "half of Beta(6, 1.2). ±11 points are at a rate of 0.9, or of the suite's rate.",
            f"With `confirm` a red suite runs again, base and head in turn, in {BLOCKS} blocks:",
            f"{ITERATIONS_AGAIN} iterations of a scenario in doubt in each, for a drop of the",
            f"suite {SAMPLE_ITERATIONS} of every scenario. Both sides share the shift of that day.",
            "",
            "| change | variation | runs of the base | iterations | red at first | in the end |",
            "|---|---|---:|---:|---:|---:|",
            *confirmation_rows(),
            "",
            *render_adaptive_section(),
            *render_metric_sections(),
            *behaviour_section(),
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
