"""Sentences about adaptive iterations: why those of a scenario ended, and how many ran."""

from __future__ import annotations

from ci_agent_eval.analysis.adaptive_summary import AdaptiveSummary
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary
from ci_agent_eval.render.numbers import count_noun, format_count, format_percent


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
