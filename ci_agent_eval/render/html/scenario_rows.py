"""The scenarios of the page: status, causes and usage.

The keys are read by `assets/scenarios.js`; empty and false values are left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ci_agent_eval.analysis.comparison.model import (
    ScenarioComparison,
    ScenarioDecrease,
    ScenarioIncrease,
)
from ci_agent_eval.analysis.reliability import Reliability
from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.cards.failures import describe_required_passes
from ci_agent_eval.render.comparison_wording import format_sides
from ci_agent_eval.render.html.page_limits import PageFiles, PageText, drop_empty
from ci_agent_eval.render.numbers import format_percent
from ci_agent_eval.render.phrases import ScenarioKey, get_key
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.scenario_rows import Cause, ScenarioRow
from ci_agent_eval.render.sentences import describe_stop

Row = dict[str, Any]

_WEIGHT = {"failing": 0, "errored": 2, "skipped": 3, "incomplete": 3, "passing": 4}
_TOTALS = ("turns", "tool_calls", "tokens", "duration_ms", "cost_usd")
"""The usage of all iterations and attempts."""
_GATED = 1
"""Of a scenario that passes, and fails the gate by the baseline or by a budget."""


def select_scenario_rows(view: ReportView, texts: PageText) -> list[ScenarioRow]:
    """Return the scenarios that the page shows: failing ones first, then the largest changes."""
    compared = index_scenarios(view)
    found = sorted(view.scenarios, key=lambda row: _rank_row(row, compared.get(row.key)))
    most = texts.caps.scenarios
    texts.cut.scenarios += max(0, len(found) - most)
    return found[:most]


def index_scenarios(view: ReportView) -> Mapping[ScenarioKey, ScenarioComparison]:
    """Return the compared scenarios by their key."""
    return {} if view.comparison is None else {get_key(s): s for s in view.comparison.scenarios}


def _rank_row(
    row: ScenarioRow, compared: ScenarioComparison | None
) -> tuple[int, bool, bool, float]:
    weight = _GATED if _is_gated(row) else _WEIGHT[row.status]
    size = 0.0 if compared is None else _measure_change(compared)
    return weight, not row.is_required, not row.hard_overruns, -size


def _measure_change(scenario: ScenarioComparison) -> float:
    """Return the largest certain change of cost, tokens or latency, as a logarithm."""
    changes: Sequence[ScenarioIncrease | ScenarioDecrease]
    changes = (*scenario.increases, *scenario.decreases)
    return max(
        (
            abs(math.log(one.after / one.before)) if one.before > 0 < one.after else math.inf
            for one in changes
        ),
        default=0.0,
    )


def _is_gated(row: ScenarioRow) -> bool:
    return row.is_passing and (row.fails_by_budget or row.fails_by_baseline)


def build_scenario_data(
    row: ScenarioRow,
    compared: ScenarioComparison | None,
    texts: PageText,
    places: PageFiles,
) -> Row:
    """Return a scenario as the page's script reads it."""
    scenario, tally = row.scenario, row.scenario.tally
    shown_id = texts.name(scenario.scenario_id)
    unjudged = (row.error_cause,) if scenario.unjudged_reasons else ()
    return drop_empty(
        {
            "id": shown_id,
            "key": None if shown_id == scenario.scenario_id else scenario.scenario_id,
            "agent": texts.name(scenario.agent) if scenario.agent else None,
            "unnamed": row.name.agent == "",
            "status": row.status,
            "advisory": row.is_advisory,
            "quarantine": scenario.in_quarantine,
            "evaluation": row.is_evaluation,
            "score": row.score,
            "gated": _is_gated(row),
            "against": [_build_finding(finding, texts) for finding in row.baseline_findings],
            "over": bool(row.hard_overruns),
            "flaky": scenario.flaky or None,
            "tally": [tally.passed, tally.failed, tally.error, tally.skipped],
            "passes": row.passes,
            "required": describe_required_passes(row.judgement),
            "rate": row.pass_rate,
            "range": _build_range(row),
            "cost": row.cost_per_episode,
            "latency": scenario.p95_latency_ms,
            "was": None if compared is None else _build_former_figures(compared),
            "stop": describe_stop(scenario),
            "used": drop_empty({name: getattr(scenario, name) for name in _TOTALS}),
            "tries": [_format_tries(found) for found in scenario.reliability],
            "causes": [
                _build_cause(c, texts, places) for c in texts.first((*row.causes, *unjudged))
            ],
            "place": places.locate(scenario.file, scenario.line),
        }
    )


def _build_former_figures(compared: ScenarioComparison) -> Row | None:
    """Return passes, cost and latency of the baseline; None: it has none."""
    before = compared.before
    if before is None:
        return None
    figures = {"cost": before.cost_usd, "latency": before.p95_latency_ms}
    return drop_empty({"passes": format_sides(compared)[0], **figures})


def _build_finding(finding: BaselineFinding, texts: PageText) -> Row:
    """Return a short word for a chip, the whole sentence, and whether it gates."""
    quoted = f": {texts.text(finding.quoted)}" if finding.quoted else ""
    return drop_empty(
        {
            "kind": finding.label,
            "what": f"{finding.text}{quoted}; {finding.figures}",
            "gates": finding.gates,
        }
    )


def _build_range(row: ScenarioRow) -> list[float] | None:
    """Return the ends of the interval, the rate in it, and the rate that is required."""
    interval, rate = row.scenario.pass_interval, row.scenario.rated.pass_rate
    if interval is None or rate is None:
        return None
    return [round(part, 4) for part in (*interval, rate, row.judgement.required_pass_rate)]


def _format_tries(found: Reliability) -> str:
    """Format pass@k and pass^k."""
    once, always = format_percent(found.pass_at_k), format_percent(found.pass_hat_k)
    return f"pass@{found.k} {once}, pass^{found.k} {always}"


def _build_cause(cause: Cause, texts: PageText, places: PageFiles) -> Row:
    row: Row = {
        "name": texts.name(cause.name) if cause.name else None,
        "reason": texts.text(cause.reason) if cause.reason else None,
        "place": places.locate(cause.place.file, cause.place.line),
        "iterations": cause.iterations,
    }
    return drop_empty(row)
