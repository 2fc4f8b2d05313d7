"""Check that a report read from a file is consistent with its own verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ci_agent_eval.analysis.comparison.model import Comparison, ScenarioMetrics
from ci_agent_eval.analysis.loaded_results import OutcomeTally
from ci_agent_eval.analysis.reliability import estimate_reliability
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary, compute_pass_interval
from ci_agent_eval.gate import GatePolicy, Judgement, Thresholds, decide_verdict
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.escape import visible_line
from ci_agent_eval.render.sentences import describe_reason

_MILDEST = GatePolicy(min_pass_rate=0.0, max_error_rate=1.0, allow_skipped=True, regressions="warn")
"""The mildest policy; the real one is not in the file."""

_SHOWN = 200
"""Most characters of a foreign text in a message."""


def find_contradictions(report: Report) -> Iterator[str]:
    """Yield a sentence for each contradiction in a report; our own reports have none."""
    verdict, summary = report.verdict, report.summary
    if report.passed is bool(verdict.reasons):
        yield "the conclusion contradicts the reasons"
    scenarios = [(scenario.scenario_id, scenario.agent) for scenario in summary.scenarios]
    if scenarios != [(judged.scenario_id, judged.agent) for judged in verdict.judgements]:
        yield "the judgements are not those of its scenarios"
        return
    yield from _find_misjudged(report)
    if any(s.unjudged_iterations < s.tally.skipped for s in summary.scenarios):
        yield "a scenario's iterations that were not judged are fewer than those skipped"
    gated = _sum_tallies(item.scenario for item in report.required_scenarios)
    if (summary.tally, summary.gated) != (_sum_tallies(summary.scenarios), gated):
        yield "its tally is not that of its scenarios"
    if not _evaluations_add_up(summary):
        yield "its evaluations are not those of its scenarios"
    if not all(_is_interval(part.pass_interval, part.rated) for part in _list_rated(summary)):
        yield "a pass interval is not that of its tally"
    if not all(_is_reliability(scenario) for scenario in summary.scenarios):
        yield "a scenario's pass@k and pass^k are not those of its tally"
    yield from _find_miscompared(report)
    if report.passed:
        yield from (f"it claims success, but {why}" for why in _find_gate_reasons(report))


def _find_misjudged(report: Report) -> Iterator[str]:
    for item in report.judged_scenarios():
        again = _judge_again(item.scenario, item.judgement, report.verdict.thresholds)
        if again != item.judgement:
            name = visible_line(item.scenario.scenario_id, _SHOWN)
            yield f"the judgement of scenario {name} contradicts its iterations"


def _judge_again(
    scenario: ScenarioSummary, judgement: Judgement, thresholds: Thresholds
) -> Judgement:
    """Judge a scenario by the pass rate that its judgement names."""
    policy = GatePolicy(
        min_pass_rate=judgement.required_pass_rate,
        suite_min_pass_rate=thresholds.suite_min_pass_rate,
    )
    (judged,) = decide_verdict(Summary(scenarios=(scenario,)), policy).judgements
    return judged


def _list_rated(summary: Summary) -> Iterator[Summary | ScenarioSummary]:
    yield summary
    yield from summary.scenarios


def _is_interval(interval: tuple[float, float] | None, tally: OutcomeTally) -> bool:
    """Check the pass interval of a tally."""
    expected = compute_pass_interval(tally)
    if interval is None or expected is None:
        return interval is None
    return all(abs(a - b) < 1e-5 for a, b in zip(interval, expected, strict=True))


def _is_reliability(scenario: ScenarioSummary) -> bool:
    """Check pass@k and pass^k of a scenario; files of older versions have none."""
    tally = scenario.rated
    expected = estimate_reliability(tally.passed, tally.judged)
    return scenario.reliability in {(), expected}


def _find_miscompared(report: Report) -> Iterator[str]:
    """Yield the scenarios whose comparison differs from their results."""
    if not isinstance(report.comparison, Comparison):
        return
    tallies = {(s.scenario_id, s.agent): s.rated for s in report.summary.scenarios}
    for compared in report.comparison.scenarios:
        tally = tallies.get((compared.scenario_id, compared.agent))
        if not _matches_tally(compared.after, tally):
            name = visible_line(compared.scenario_id, _SHOWN)
            yield f"what was compared of scenario {name} is not what it did"


def _matches_tally(after: ScenarioMetrics | None, tally: OutcomeTally | None) -> bool:
    """Check the compared and set-aside iterations against the scenario's tally."""
    if after is None or tally is None:
        return after is None and tally is None
    passed_aside = tally.passed - after.passed
    whole = after.judged + after.set_aside == tally.judged
    return whole and after.passed <= after.judged and 0 <= passed_aside <= after.set_aside


def _evaluations_add_up(summary: Summary) -> bool:
    """Check that the evaluations of the scenarios add up to the suite's."""
    whole, parts = summary.evaluations, [item.evaluations for item in summary.scenarios]
    counts = (sum(p.assertions for p in parts), sum(p.assertions_passed for p in parts))
    tally = sum((part.tally for part in parts), OutcomeTally())
    if (whole.tally, whole.assertions, whole.assertions_passed) != (tally, *counts):
        return False
    if any((part.mean_score is None) is bool(part.tally.judged) for part in (whole, *parts)):
        return False
    scored = math.fsum((part.mean_score or 0.0) * part.tally.judged for part in parts)
    # Each mean was rounded.
    return abs((whole.mean_score or 0.0) * tally.judged - scored) <= 1e-5 * tally.judged


def _sum_tallies(scenarios: Iterable[ScenarioSummary]) -> OutcomeTally:
    return sum((scenario.tally for scenario in scenarios), OutcomeTally())


def _find_gate_reasons(report: Report) -> Iterator[str]:
    """Yield the reasons to fail that hold under every policy."""
    for item in report.required_scenarios:
        if item.judgement.fails_alone or item.judgement.status == "errored":
            name = visible_line(item.scenario.scenario_id, _SHOWN)
            yield f"required scenario {name} is {item.judgement.status}"
    policy = replace(
        _MILDEST,
        suite_min_pass_rate=report.verdict.thresholds.suite_min_pass_rate,
        eval_min_pass_rate=report.verdict.thresholds.min_pass_rate,
        eval_min_score=report.verdict.thresholds.min_score,
        increases=report.verdict.increases,
    )
    summary, acknowledged = report.summary, report.verdict.acknowledged
    for reason in decide_verdict(summary, policy, report.comparison, acknowledged).reasons:
        yield visible_line(describe_reason(reason), _SHOWN)
