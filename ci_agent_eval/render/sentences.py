"""Sentences of findings, of reasons, and of adaptive iterations."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ci_agent_eval.analysis.comparison.findings import (
    LimitedMetric,
    MetricIncrease,
    compute_increase,
)
from ci_agent_eval.analysis.comparison.model import (
    ConfirmationResult,
    ScenarioIncrease,
    ScenarioMetric,
    SuiteChange,
    SuiteMeasure,
)
from ci_agent_eval.analysis.iteration_counts import AdaptiveSummary
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary
from ci_agent_eval.contract.findings import (
    UPLOAD_ALL_SHARDS,
    Finding,
    MissingShards,
    RepeatedShard,
    StoppedRun,
)
from ci_agent_eval.gate.model import Reason, ReasonData
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import count_noun, format_count, format_percent

LIMITED_FIGURES: dict[LimitedMetric, str] = {
    "cost_usd": "cost per episode",
    "p95_latency_ms": "p95 turn latency",
    "typical_latency_ms": "typical turn latency",
}
"""Labels of the figures whose increase can be limited."""

_MOST_NAMED = 20
"""Most missing shards that are named; the others are counted."""


def describe_finding(finding: Finding) -> str:
    """Return the sentence of a finding with its advice; it may hold foreign text."""
    message = finding.message
    if isinstance(message, str):
        return message
    if isinstance(message, MissingShards):
        return f"{_describe_missing_shards(message)}; {UPLOAD_ALL_SHARDS}"
    if isinstance(message, RepeatedShard):
        shard = f"shard {message.index} of {message.total}"
        return f"{shard} is there {message.times} times; {UPLOAD_ALL_SHARDS}"
    return _describe_stopped_run(message)


def describe_reason(reason: Reason) -> str:
    """Return the sentence of a reason or warning; it may hold foreign text."""
    sentence = _describe_message(reason.message)
    return f"{sentence}; {reason.note}" if reason.note else sentence


def _describe_message(message: str | ReasonData) -> str:
    if isinstance(message, str):
        return message
    if isinstance(message, Finding):
        where = f"{message.where}: " if message.where else ""
        return f"{where}{describe_finding(message)}"
    if isinstance(message, SuiteChange):
        return f"{describe_suite_change(message)}: {describe_difference(message)}"
    if isinstance(message, ScenarioIncrease):
        return describe_scenario_increase(message)
    return describe_increase(message)


SUITE_MEASURES: dict[SuiteMeasure, str] = {
    "pass_rate": "the suite's pass rate",
    "evaluation_pass_rate": "the evaluations' pass rate",
    "evaluation_score": "the evaluations' average score",
}
"""Labels of the measures that are compared over the suite as a whole."""


def describe_suite_change(change: SuiteChange) -> str:
    """Return `the suite passes less often, 97 % → 88 %`."""
    if change.measure == "evaluation_score":
        pair = numbers.format_pair(numbers.format_score, change.before, change.after, 2)
        return f"{SUITE_MEASURES[change.measure]} fell, {pair}"
    pair = numbers.format_pair(numbers.format_share, change.before, change.after, 0)
    subject = "the suite passes" if change.measure == "pass_rate" else "the evaluations pass"
    return f"{subject} less often, {pair}"


def format_suite_mean(change: SuiteChange, mean: float) -> str:
    """Format a mean of the suite: a share in percent, a score as it is."""
    is_score = change.measure == "evaluation_score"
    return numbers.format_score(mean) if is_score else numbers.format_percent(mean)


def describe_difference(change: SuiteChange) -> str:
    """Return the difference with its interval, and the assumption of its test."""
    moved = format_suite_difference(change)
    return f"{moved}, 95 % interval{_describe_day_variation(change)}{_describe_again(change)}"


_AGAIN: dict[ConfirmationResult, str] = {
    "confirmed": "confirmed by running the base again",
    "refuted": "not confirmed by running the base again",
    "unclear": "neither confirmed nor refuted by running the base again, for too little was judged",
}


def _describe_again(change: SuiteChange) -> str:
    """Return what running both sides again in turn showed; empty if they were not."""
    again = change.confirmation
    if again is None:
        return ""
    before, now = (format_suite_mean(change, mean) for mean in (again.before, again.after))
    scenarios = numbers.count_noun(again.scenarios, "scenario")
    return f"; {_AGAIN[again.result]}: {before} there today and {now} here, in {scenarios}"


def format_suite_difference(change: SuiteChange) -> str:
    """Format the difference of a mean of the suite and its interval."""
    is_score = change.measure == "evaluation_score"
    write = numbers.format_score_change if is_score else numbers.format_points
    return write(change.difference, change.interval)


def _describe_day_variation(change: SuiteChange) -> str:
    """Say which day-to-day variation is assumed, if there is one run of the base to show it."""
    if change.runs > 1:
        return ""
    return f"; one base run, day-to-day variation of ±{change.day_variation * 100:.2g} % assumed"


def _describe_missing_shards(missing: MissingShards) -> str:
    what = "shard" if len(missing.indexes) == 1 else "shards"
    rest = len(missing.indexes) - _MOST_NAMED
    named = ", ".join(map(str, missing.indexes[:_MOST_NAMED]))
    more = f" and {rest} more" if rest > 0 else ""
    return f"{what} {named}{more} of {missing.total} left no results"


def _list_names(scenarios: Sequence[str]) -> str:
    rest = len(scenarios) - _MOST_NAMED
    more = f" and {rest} more" if rest > 0 else ""
    return f"{', '.join(scenarios[:_MOST_NAMED])}{more}"


def _describe_stopped_run(run: StoppedRun) -> str:
    text = f"the run was stopped ({run.stop.sentence})"
    if run.selected is not None:
        text = f"{run.left_out} of {run.selected} selected episodes did not run, because {text}"
    if run.scenarios:
        text = f"{text}; it could not afford the required scenarios {_list_names(run.scenarios)}"
    return f"{text}; raise the budget or let the episodes take less, then run the suite again"


def describe_increase(increase: MetricIncrease) -> str:
    """Return how a figure of the suite rose: `cost per episode rose by 26 % (20 % allowed)`."""
    figure, moved = LIMITED_FIGURES[increase.figure], increase.change
    if increase.kind == "not_measured":
        missing = numbers.format_count(moved.compared - moved.scenarios)
        scenarios = numbers.count_noun(moved.compared, "scenario")
        return f"{figure} is not measured on both sides in {missing} of {scenarios}"
    rise, chance = compute_increase(moved), ""
    if increase.kind == "possible":
        chance = ", which may be chance"
    if rise is None or math.isinf(rise):
        return f"{figure} rose from nothing{chance}"
    allowed = numbers.format_allowed(increase.allowed)
    return f"{figure} rose {numbers.format_rise(rise)} ({allowed}){chance}"


_SCENARIO_METRICS: dict[ScenarioMetric, str] = {
    "cost_usd": "cost",
    "tokens": "tokens",
    "typical_latency_ms": "turn latency",
}


def describe_scenario_increase(increase: ScenarioIncrease) -> str:
    """Describe how much a metric of a scenario rose: `cost ×5.0, at most ×1.5 allowed`."""  # noqa: RUF002 - times
    name, allowed = _SCENARIO_METRICS[increase.metric], increase.allowed
    limit = "" if allowed is None else f", at most {_format_factor(1 + allowed)} allowed"
    p_value = f"adjusted {numbers.format_p_value(increase.p_value)}"
    if not increase.before:
        return f"{name} rose from nothing{limit} ({p_value})"
    return f"{name} {_format_factor(increase.after / increase.before)}{limit} ({p_value})"


def _format_factor(factor: float) -> str:
    return f"×{factor:,.1f}" if factor >= 2 else f"×{factor:.2f}"  # noqa: RUF001 - times


def describe_stop(scenario: ScenarioSummary) -> str:
    """Return why the adaptive iterations of a scenario ended; empty: their number is fixed."""
    adaptive = scenario.adaptive
    if adaptive is None:
        return ""
    ran = count_noun(scenario.tally.ran, "iteration")
    required = "rate" if adaptive.required is None else format_percent(adaptive.required)
    sentences = {
        "below_required": f"decided: below the required {required} after {ran}",
        "reaches_required": f"decided: reaches the required {required} after {ran}",
        "regression": f"decided: lower than the baseline after {ran}",
        "no_regression": f"decided: not lower than the baseline after {ran}",
        "inconclusive": f"inconclusive after {ran}: more iterations cannot help",
        "maximum": f"undecided at the maximum of {ran}, so the pass rate counts",
        "not_judged": f"ended after {ran}: too many were not judged",
        "undemanding": f"ended after {ran}: nothing is required of it",
        "budget": f"undecided after {ran}: the suite's budget is used up",
        "unfinished": f"undecided after {ran}: the run ended first",
    }
    return sentences[adaptive.stop or "unfinished"]


def describe_rated(adaptive: AdaptiveSummary | None) -> str:
    """Return which iterations a pass rate is of, if not of all; it starts with a space."""
    return "" if adaptive is None else f" in the first {format_count(adaptive.rated.judged)}"


def describe_saving(summary: Summary) -> str:
    """Return how many of the adaptive iterations ran; empty: none are adaptive."""
    found = [(s.tally.ran, s.adaptive.maximum) for s in summary.scenarios if s.adaptive]
    if not found:
        return ""
    ran, most = (sum(counts) for counts in zip(*found, strict=True))
    return f"adaptive: {format_count(ran)} of at most {count_noun(most, 'iteration')}"
