"""Build the trend of the last baseline runs: the points of a chart, oldest first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from ci_agent_eval.analysis.comparison.model import BaselineRun, TrendPoint
from ci_agent_eval.analysis.loaded_results import OutcomeTally
from ci_agent_eval.analysis.summary import ScenarioSummary

MAX_TREND_RUNS = 20
"""Maximum number of baseline runs in a trend."""
_SHORT_SHA = 7


def build_trend(
    runs: Sequence[BaselineRun],
    scenarios: Sequence[Iterable[ScenarioSummary]],
    now: Iterable[ScenarioSummary],
) -> tuple[TrendPoint, ...]:
    """Return a point for each of the latest runs, which are given latest first, and for the head.

    Each point covers all scenarios of its run, as the run's own report does.
    """
    paired = list(zip(runs, scenarios, strict=True))[:MAX_TREND_RUNS]
    before = [build_trend_point(label_run(run), found) for run, found in reversed(paired)]
    return (*before, build_trend_point("", now))


def build_trend_point(label: str, scenarios: Iterable[ScenarioSummary]) -> TrendPoint:
    """Return the pass rate of a run's episodes, and their mean and total cost."""
    listed = list(scenarios)
    tally = sum((scenario.rated for scenario in listed), OutcomeTally())
    costs = [scenario.cost_usd for scenario in listed if scenario.tally.ran]
    known = [cost for cost in costs if cost is not None]
    cost = math.fsum(known) if known and len(known) == len(costs) else None
    rate, ran = tally.pass_rate, sum(scenario.tally.ran for scenario in listed)
    return TrendPoint(
        label=label,
        pass_rate=None if rate is None else round(rate, 6),
        cost_usd=None if cost is None else round(cost / ran, 10),
        total_usd=None if cost is None else round(cost, 10),
    )


def label_run(run: BaselineRun) -> str:
    """Return a run's short commit, or else its name."""
    return run.commit[:_SHORT_SHA] if run.commit else run.label
