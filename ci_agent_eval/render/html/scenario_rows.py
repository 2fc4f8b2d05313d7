"""What the page knows of each scenario: how it stands, why, and what it took.

The keys are read by `assets/scenarios.js`; what is empty or false is left out.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ci_agent_eval.analysis.reliability import Reliability
from ci_agent_eval.analysis.summary import ScenarioSummary
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.baseline_findings import Doubt, gating
from ci_agent_eval.render.comparison import Key, key_of
from ci_agent_eval.render.html.caps import Shown
from ci_agent_eval.render.html.embed import filled
from ci_agent_eval.render.html.places import Places
from ci_agent_eval.render.views import Cause, agent_of, causes, error_cause, of, rate_of

Row = dict[str, Any]

_WEIGHT = {"failing": 0, "errored": 2, "skipped": 3, "incomplete": 3, "passing": 4}
_GATED = 1
"""Of a scenario that passes, and fails the gate by the baseline or by a budget."""


def listed_scenarios(report: Report, shown: Shown) -> list[JudgedScenario]:
    """Return the scenarios that the page shows, the ones with trouble first."""
    gates = gating(report)
    found = sorted(report.judged_scenarios(), key=lambda item: _weight(item, gates))
    most = shown.caps.scenarios
    shown.cut.scenarios += max(0, len(found) - most)
    return found[:most]


def _weight(item: JudgedScenario, gates: Container[Key]) -> tuple[int, bool, bool]:
    over = any(found.violation.hard for found in item.scenario.violations)
    weight = _WEIGHT[item.judgement.status]
    if item.is_passing and (_gates_by_budget(item) or key_of(item.scenario) in gates):
        weight = _GATED
    return weight, item.judgement.gate == "advisory", not over


def _gates_by_budget(item: JudgedScenario) -> bool:
    is_over = any(found.violation.hard for found in item.scenario.violations)
    return is_over and item.scenario.gate == "required"


def scenario_row(
    item: JudgedScenario, shown: Shown, places: Places, against: Sequence[Doubt] = ()
) -> Row:
    """Return what the page says of a scenario; `against` is what the baseline says of it."""
    scenario, status = item.scenario, item.judgement.status
    tally = scenario.tally
    row: Row = {
        "id": shown.name(scenario.scenario_id),
        "agent": shown.name(scenario.agent) if scenario.agent else None,
        "unnamed": agent_of(scenario) == "",
        "status": status,
        "advisory": item.judgement.gate == "advisory" and _informs(item),
        "quarantine": scenario.in_quarantine,
        "evaluation": scenario.mode == "evaluation",
        "score": _score(scenario.evaluations.mean_score),
        "gated": item.is_passing and (_gates_by_budget(item) or any(d.gates for d in against)),
        "against": [_against(doubt, shown) for doubt in against],
        "over": any(found.violation.hard for found in scenario.violations),
        "flaky": scenario.flaky or None,
        "tally": [tally.passed, tally.failed, tally.error, tally.skipped],
        "passes": of(tally.passed, tally.judged),
        "required": _required(item),
        "rate": rate_of(scenario) if tally.judged > 1 else None,
        "range": _range(item),
        "cost": _per_episode(scenario.cost_usd, tally.ran),
        "latency": _written(scenario.p95_latency_ms),
        "totals": _totals(scenario),
        "tries": [_tries(found) for found in scenario.reliability],
        "causes": [_cause(cause, shown, places) for cause in shown.first(_causes(scenario))],
        "place": places.of(scenario.file, scenario.line),
    }
    return filled(row)


def _against(doubt: Doubt, shown: Shown) -> Row:
    """Return a short word for a chip, the whole of it, and whether it gates."""
    quoted = f": {shown.text(doubt.quoted)}" if doubt.quoted else ""
    row: Row = {
        "kind": doubt.reason.kind.replace("_", " "),
        "what": f"{doubt.what}{quoted}; passes {doubt.now} now, {doubt.before} before",
        "gates": doubt.gates,
    }
    return filled(row)


def _informs(item: JudgedScenario) -> bool:
    """Say whether it is advisory by its own will, and no evaluation."""
    return not item.only_measures and not item.scenario.in_quarantine


def _required(item: JudgedScenario) -> str:
    """Write what the scenario needs, where that is not that every iteration passes."""
    judgement = item.judgement
    if judgement.required_passes is not None:
        return f"{numbers.counted(judgement.required_passes, 'pass', 'passes')} required"
    if judgement.required_pass_rate != 1:
        return f"{numbers.percent(judgement.required_pass_rate)} required"
    return ""


def _range(item: JudgedScenario) -> list[float] | None:
    """Return the ends of the interval, the rate in it, and the rate that is required."""
    interval, rate = item.scenario.pass_interval, item.scenario.tally.pass_rate
    if interval is None or rate is None:
        return None
    return [round(part, 4) for part in (*interval, rate, item.judgement.required_pass_rate)]


def _score(mean: float | None) -> str | None:
    return None if mean is None else numbers.score(mean)


def _per_episode(cost: float | None, ran: int) -> str | None:
    return None if cost is None else numbers.money(cost / max(ran, 1))


def _written(latency: float | None) -> str | None:
    return None if latency is None else numbers.milliseconds(latency)


def _totals(scenario: ScenarioSummary) -> list[str]:
    """Write what all iterations and attempts of the scenario took together."""
    written = (
        ("turn", scenario.turns),
        ("tool call", scenario.tool_calls),
        ("token", scenario.tokens or 0),
    )
    totals = [numbers.counted(number, noun) for noun, number in written if number]
    if scenario.duration_ms is not None:
        totals.append(numbers.milliseconds(scenario.duration_ms))
    if scenario.cost_usd is not None:
        totals.append(numbers.money(scenario.cost_usd))
    return totals


def _tries(found: Reliability) -> str:
    """Write what k tries come to: pass@k, then pass^k."""
    once, always = numbers.percent(found.pass_at_k), numbers.percent(found.pass_hat_k)
    return f"pass@{found.k} {once}, pass^{found.k} {always}"


def _causes(scenario: ScenarioSummary) -> Sequence[Cause]:
    """Return why iterations failed, then why one was not judged."""
    unjudged = (error_cause(scenario),) if scenario.unjudged_reasons else ()
    return (*causes(scenario), *unjudged)


def _cause(cause: Cause, shown: Shown, places: Places) -> Row:
    row: Row = {
        "name": shown.name(cause.name) if cause.name else None,
        "reason": shown.text(cause.reason) if cause.reason else None,
        "place": places.of(cause.file, cause.line),
        "iterations": cause.iterations,
    }
    return filled(row)
