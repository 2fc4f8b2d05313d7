"""The comparison with the baseline as rows of the report view."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.comparison.findings import describe_confirmation, describe_set_aside
from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    NoBaseline,
    ScenarioChange,
    ScenarioComparison,
    SuiteChange,
)
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.behaviour_diff import TrajectoryDiff, build_diff
from ci_agent_eval.render.numbers import ABSENT, count_noun, format_count
from ci_agent_eval.render.phrases import ScenarioKey, ScenarioName, get_key
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

_SHIFTED: tuple[ScenarioChange, ...] = ("newly_failing", "still_failing", "fixed")


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """A scenario on both sides, written out; raw figures are in `scenario`."""

    scenario: ScenarioComparison
    name: ScenarioName
    before: str
    """Passed of judged iterations in the baseline."""
    now: str
    change: str
    """In our own words; an unchanged scenario is "still passing"."""
    call: str
    """That its pass rate fell, or may have fallen; empty: neither."""
    certainty: str
    """The adjusted p-value; empty where it says nothing."""
    set_aside: str
    """How many iterations are not comparable; empty: all are."""
    diff: TrajectoryDiff | None
    """None: both sides call the same tools in the same order."""

    @property
    def key(self) -> ScenarioKey:
        """Scenario id and agent."""
        return get_key(self.scenario)

    @property
    def note(self) -> str:
        """Change, call and p-value, for a row about something else."""
        # "Still passing" beside a regression would contradict it.
        change = "" if self.call and self.scenario.change == "unchanged" else self.change
        return ", ".join(part for part in (change, self.call, self.certainty) if part)

    @property
    def is_changed(self) -> bool:
        """Whether a reader should see how its trajectory differs."""
        is_doubted = self.scenario.call in {"regression", "unconfirmed", "undecided"}
        return self.scenario.change in _SHIFTED or is_doubted or bool(self.scenario.newly_over)


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """A condition that differs from the baseline in compared scenarios."""

    condition: str
    before: str
    """Foreign text, as is `after`."""
    after: str
    scenarios: str
    """How many of the compared scenarios it concerns."""


MOST_CONDITIONS = 4
"""Most changed conditions that are shown."""


@dataclass(frozen=True, slots=True)
class ToolRow:
    """A tool that was renamed, or that more or fewer episodes of the suite call."""

    tool: str
    """Foreign text, as is `renamed_to`."""
    renamed_to: str | None
    change: str
    """How often it is called, and in how many scenarios, in our own words."""


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A comparison with the baseline."""

    label: str
    """The baseline's name, foreign text."""
    method: str
    """How its figures and p-values were calculated."""
    scenarios: Sequence[ComparisonRow]
    changed_conditions: Sequence[ConditionRow] = ()
    """Conditions that differ in compared scenarios."""
    tools: Sequence[ToolRow] = ()
    """Changes of tools; scenarios that they explain are not listed again."""

    @property
    def diverging_scenarios(self) -> Sequence[ComparisonRow]:
        """Otherwise unchanged scenarios whose tool calls changed."""
        return [row for row in self.scenarios if row.diff and not row.is_changed]


def build_comparison(report: Report) -> ComparisonView | None:
    """Return the comparison with the baseline; None: there is none."""
    found = get_comparison(report)
    if found is None:
        return None
    rows = tuple(map(_build_row, found.scenarios))
    conditions = tuple(_build_condition_rows(found))
    tools = tuple(_build_tool_rows(found))
    method = describe_method(found)
    return ComparisonView(found.label, method, rows, conditions, tools)


def _build_tool_rows(found: Comparison) -> Iterator[ToolRow]:
    for rename in found.tool_renames:
        scenarios = count_noun(rename.calling, "scenario")
        words = f"in {format_count(rename.scenarios)} of {scenarios}"
        yield ToolRow(rename.before, rename.after, words)
    for tool in found.tool_changes:
        before, after = map(numbers.format_percent, (tool.before, tool.after))
        scenarios = count_noun(tool.scenarios, "scenario")
        yield ToolRow(tool.tool, None, f"called in {before} → {after} of episodes in {scenarios}")


def _build_condition_rows(found: Comparison) -> Iterator[ConditionRow]:
    compared = count_noun(found.pass_rate.compared, "compared scenario")
    for changed in found.changed_conditions[:MOST_CONDITIONS]:
        difference, count = changed.difference, format_count(changed.scenarios)
        yield ConditionRow(
            difference.condition, difference.before, difference.after, f"{count} of {compared}"
        )


def _build_row(scenario: ScenarioComparison) -> ComparisonRow:
    sides = (scenario.before, scenario.after)
    before, now = (ABSENT if s is None else numbers.format_part(s.passed, s.judged) for s in sides)
    return ComparisonRow(
        scenario=scenario,
        name=ScenarioName(scenario.scenario_id, scenario.agent),
        before=before,
        now=now,
        change=describe_change(scenario),
        call=describe_call(scenario),
        certainty=describe_certainty(scenario),
        set_aside=describe_set_aside(scenario) if scenario.differences else "",
        diff=None if scenario.divergence is None else build_diff(scenario.divergence),
    )


def get_comparison(report: Report) -> Comparison | None:
    """Return the comparison, None without a baseline."""
    return report.comparison if isinstance(report.comparison, Comparison) else None


def _describe_repeats(found: Comparison) -> str:
    """Count the copies and repeated replays that the baseline leaves out."""
    parts = []
    if found.copies:
        parts.append(count_noun(found.copies, "copy", "copies"))
    if found.replays:
        parts.append(count_noun(found.replays, "repeated replay"))
    return f"{' and '.join(parts)} not counted" if parts else ""


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
    return " ".join([text, *(_describe_suite_test(change) for change in found.suite)])


def _describe_suite_test(change: SuiteChange) -> str:
    """Describe the test of a measure of the suite, with the change and the p-value."""
    figure = SUITE_MEASURES[change.measure]
    p_value = numbers.format_p_value(change.p_value)
    return f"{figure[0].upper()}{figure[1:]}: {describe_difference(change)}, {p_value}."


def describe_change(scenario: ScenarioComparison) -> str:
    """Return the label of a scenario's change; an unchanged one is "still passing"."""
    if scenario.change != "unchanged":
        return CHANGES.get(scenario.change, scenario.change.replace("_", " "))
    passing = None if scenario.after is None else scenario.after.passing
    return "not judged" if passing is None else "still passing"


def describe_call(scenario: ScenarioComparison) -> str:
    """Return the label of a regression or an inconclusive drop; empty without a drop."""
    if scenario.call == "regression":
        return "regression"
    if scenario.call == "unconfirmed":
        return "not confirmed today"
    return "not enough iterations to tell" if scenario.call == "undecided" else ""


_DROPS = frozenset({"regression", "unconfirmed"})


def describe_certainty(scenario: ScenarioComparison) -> str:
    """Format the p-value of a drop, with its confirmation, or of a failing scenario; else empty."""
    p_value, is_listed = scenario.p_value, scenario.change in _SHIFTED
    if p_value is None or (scenario.call not in _DROPS and (p_value == 1 or not is_listed)):
        return ""
    parts = (f"adjusted {numbers.format_p_value(p_value)}", describe_confirmation(scenario))
    return "; ".join(filter(None, parts))


def describe_baseline(report: Report) -> tuple[str, str] | None:
    """Return our words about the baseline, then its label or the reason why there is none."""
    if isinstance(report.comparison, NoBaseline):
        return "no baseline:", report.comparison.reason
    found = get_comparison(report)
    if found is None:
        return None
    return f"compared with {count_noun(found.runs, 'run')} of", found.label


def format_passes(scenario: ScenarioComparison) -> str:
    """Return passed of judged iterations on both sides: `60/60 → 0/10`."""
    sides = [one for one in (scenario.before, scenario.after) if one is not None]
    return " → ".join(f"{format_count(one.passed)}/{format_count(one.judged)}" for one in sides)
