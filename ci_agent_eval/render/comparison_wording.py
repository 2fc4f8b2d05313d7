"""The words for a compared scenario, for changed tools, and for the method of a comparison."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.findings import describe_confirmation
from ci_agent_eval.analysis.comparison.model import (
    ChangedCondition,
    Comparison,
    NoBaseline,
    ScenarioChange,
    ScenarioComparison,
    SuiteChange,
    ToolChange,
    ToolRename,
)
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import ABSENT, count_noun
from ci_agent_eval.render.phrases import Phrase, Quoted
from ci_agent_eval.render.sentences import SUITE_MEASURES, describe_difference

CHANGES: dict[ScenarioChange, str] = {
    "newly_failing": "newly failing",
    "still_failing": "still failing",
    "fixed": "fixed",
    "new": "new",
    "vanished": "vanished",
    "not_run": "did not run",
    "not_comparable": "not comparable",
    "not_judged": "not judged",
    "unchanged": "unchanged",
}
"""Label of each change."""

_CALLS = {
    "regression": "regression",
    "unconfirmed": "not confirmed today",
    "undecided": "not enough iterations to tell",
}
"""Label of each kind of drop."""

_SHIFTED: tuple[ScenarioChange, ...] = ("newly_failing", "still_failing", "fixed")
_DROPS = frozenset({"regression", "unconfirmed"})


def get_comparison(report: Report) -> Comparison | None:
    """Return the comparison, None without a baseline."""
    return report.comparison if isinstance(report.comparison, Comparison) else None


def is_changed(scenario: ScenarioComparison) -> bool:
    """Say whether a reader should see how a scenario's trajectory differs."""
    is_doubted = scenario.call in _CALLS
    return scenario.change in _SHIFTED or is_doubted or bool(scenario.newly_over)


def list_diverging(found: Comparison | None) -> list[ScenarioComparison]:
    """Return the otherwise unchanged scenarios whose tool calls changed."""
    scenarios = () if found is None else found.scenarios
    return [one for one in scenarios if one.divergence and not is_changed(one)]


def format_sides(scenario: ScenarioComparison) -> tuple[str, str]:
    """Return passed of judged iterations in the baseline and now."""
    before, now = (
        ABSENT if side is None else numbers.format_part(side.passed, side.judged)
        for side in (scenario.before, scenario.after)
    )
    return before, now


def format_passes(scenario: ScenarioComparison) -> str:
    """Return passed of judged iterations on both sides: `60/60 → 0/10`."""
    return " → ".join(side for side in format_sides(scenario) if side != ABSENT)


def describe_call(scenario: ScenarioComparison) -> str:
    """Return the label of a regression or an inconclusive drop; empty without a drop."""
    return _CALLS.get(scenario.call or "", "")


def describe_certainty(scenario: ScenarioComparison) -> str:
    """Format the p-value of a drop, with its confirmation, or of a failing scenario; else empty."""
    p_value, is_listed = scenario.p_value, scenario.change in _SHIFTED
    if p_value is None or (scenario.call not in _DROPS and (p_value == 1 or not is_listed)):
        return ""
    parts = (f"adjusted {numbers.format_p_value(p_value)}", describe_confirmation(scenario))
    return "; ".join(filter(None, parts))


def describe_note(scenario: ScenarioComparison) -> str:
    """Return change, call and p-value, for a line about something else."""
    call, change = describe_call(scenario), CHANGES[scenario.change]
    if scenario.change == "unchanged":
        passing = None if scenario.after is None else scenario.after.passing
        # "Still passing" beside a regression would contradict it.
        change = "" if call else "not judged" if passing is None else "still passing"
    return ", ".join(part for part in (change, call, describe_certainty(scenario)) if part)


def describe_rename(rename: ToolRename) -> Phrase:
    """Return that a tool has another name: `tool look_up is now find in 14 scenarios`."""
    scenarios = count_noun(rename.scenarios, "scenario")
    return ("tool ", Quoted(rename.before), " is now ", Quoted(rename.after), f" in {scenarios}")


def describe_tool(tool: ToolChange) -> Phrase:
    """Return that a tool is called in more or fewer episodes than before."""
    scenarios = count_noun(tool.scenarios, "scenario")
    if not (tool.before and tool.after):
        newly = "newly" if tool.after else "no longer"
        return (Quoted(tool.tool), f" is {newly} called in {scenarios}")
    pair = numbers.format_pair(numbers.format_share, tool.before, tool.after, 0)
    return (Quoted(tool.tool), f" is called in {pair} of the episodes of {scenarios}")


def describe_condition(changed: ChangedCondition) -> Phrase:
    """Return a condition that differs from the baseline: `model gpt-5 → gpt-6 in 3 scenarios`."""
    one, scenarios = changed.difference, count_noun(changed.scenarios, "scenario")
    return (f"{one.condition} ", Quoted(one.before), " → ", Quoted(one.after), f" in {scenarios}")


def describe_method(found: Comparison) -> str:
    """Describe the baseline's figures and the tests for regressions."""
    runs, both = count_noun(found.runs, "run"), count_noun(found.pass_rate.compared, "scenario")
    tested = count_noun(found.tested_count, "scenario")
    level = numbers.format_percent(found.level).replace(".0 ", " ")
    copies = f" ({repeated})" if (repeated := _describe_repeats(found)) else ""
    text = (
        f"Baseline of {runs}{copies}; its figures and the changes are means "
        f"over the {both} compared, each counted once, changes with their 95 % "
        f"interval; typical turn latency: geometric mean; total cost: its latest run. "
        f"Pass rates: an unchanged suite shows a certain drop in at most {level} of its runs; "
        f"{tested} failed often enough for one (p adjusted by Benjamini-Hochberg)."
    )
    return " ".join([text, *map(_describe_suite_test, found.suite)])


def _describe_repeats(found: Comparison) -> str:
    """Count the copies and repeated replays that the baseline leaves out."""
    parts = [count_noun(found.copies, "copy", "copies")] if found.copies else []
    parts += [count_noun(found.replays, "repeated replay")] if found.replays else []
    return f"{' and '.join(parts)} not counted" if parts else ""


def _describe_suite_test(change: SuiteChange) -> str:
    """Describe the test of a measure of the suite, with the change and the p-value."""
    figure = SUITE_MEASURES[change.measure]
    p_value = numbers.format_p_value(change.p_value)
    return f"{figure[0].upper()}{figure[1:]}: {describe_difference(change)}, {p_value}."


def describe_baseline(report: Report) -> tuple[str, str] | None:
    """Return our words about the baseline, then its label or the reason why there is none."""
    found = report.comparison
    if isinstance(found, NoBaseline):
        return "no baseline:", found.reason
    if found is None:
        return None
    return f"compared with {count_noun(found.runs, 'run')} of", found.label
