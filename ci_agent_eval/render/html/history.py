"""Passes, cost and latency of each scenario in the baseline's runs, for the page's script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ci_agent_eval.analysis.comparison.model import BaselineRun
from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.analysis.summary import ScenarioSummary, summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.render import numbers
from ci_agent_eval.render.comparison_view import ComparisonRow
from ci_agent_eval.render.html.embed import embed_json
from ci_agent_eval.render.html.page_limits import FEWEST_RUNS, PageText
from ci_agent_eval.render.scenario_name import ScenarioKey, get_key
from ci_agent_eval.render.scenario_rows import ScenarioRow

HistoryPoint = list[Any]
"""Number of the run, passed of judged iterations, cost and latency as words; then as numbers."""


_MOST_RUNS = 20
"""Latest runs of the baseline that have a point."""
_SHORT_SHA = 7


class ScenarioHistories:
    """Builds histories until their share of the page is used up; runs are given latest first."""

    def __init__(self, runs: Sequence[BaselineRun], texts: PageText) -> None:
        latest = list(reversed(runs[:_MOST_RUNS]))
        self.labels = [texts.name(_label_run(run)) for run in latest]
        """Of the runs, the oldest first."""
        self._texts = texts
        self._left = texts.caps.histories
        self._points: dict[ScenarioKey, list[HistoryPoint]] = {}
        for number, run in enumerate(latest):
            loaded = LoadedResults(episodes=run.episodes)
            for scenario in summarize_results(loaded, budgets=SuiteBudgets()).scenarios:
                points = self._points.setdefault(get_key(scenario), [])
                points.append(_build_point(number, scenario))

    def build(self, row: ScenarioRow, compared: ComparisonRow | None) -> list[HistoryPoint]:
        """Return the points of a scenario, this run's last; empty: it ran too seldom."""
        former = compared.scenario.renamed_from if compared else None
        before = self._points.get((former or row.scenario.scenario_id, row.scenario.agent), [])
        if len(before) < FEWEST_RUNS:
            return []
        if self._left <= 0:
            self._texts.cut.histories += 1
            return []
        points = [*before, _build_point(len(self.labels), row.scenario)]
        self._left -= len(embed_json(points))
        return points


def _build_point(number: int, scenario: ScenarioSummary) -> HistoryPoint:
    tally = scenario.tally
    total, latency = scenario.cost_usd, scenario.p95_latency_ms
    cost = None if total is None or not tally.ran else total / tally.ran
    return [
        number,
        numbers.format_part(tally.passed, tally.judged),
        numbers.format_cell(cost, numbers.format_money).text,
        numbers.format_cell(latency, numbers.format_milliseconds).text,
        round(tally.passed / tally.judged, 4) if tally.judged else None,
        cost,
        latency,
    ]


def _label_run(run: BaselineRun) -> str:
    """Return a run's short commit, or else its name."""
    return run.commit[:_SHORT_SHA] if run.commit else run.label
