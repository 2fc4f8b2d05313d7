"""The certain changes of a comparison as phrases: worse, better, different."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    MetricChange,
    ScenarioComparison,
    ScenarioDecrease,
    ScenarioIncrease,
    ScenarioMetric,
    SuiteChange,
)
from ci_agent_eval.contract.wording import build_natural_key
from ci_agent_eval.gate.failure_groups import (
    group_failures,
    is_broken,
    list_crashed,
    list_unjudged,
    passes_less_often,
)
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.cards.instructions import name_change
from ci_agent_eval.render.comparison_wording import (
    describe_condition,
    describe_rename,
    describe_tool,
    format_passes,
)
from ci_agent_eval.render.headline import is_notable
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.phrases import (
    MOST_NAMES,
    NAME_LIMIT,
    Phrase,
    Quoted,
    ScenarioKey,
    get_key,
    join_first,
    join_phrases,
)
from ci_agent_eval.render.sentences import SUITE_MEASURES, format_suite_mean

MOST_IN = 2
"""Scenarios that are named beside the figure that they change."""
LEAST_POINTS = 0.01
"""Change of a pass rate that is mentioned."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """A metric of the suite, with its words and its writer."""

    label: str
    change: MetricChange
    write: Callable[[float, int], str]
    digits: int
    scenario_metric: ScenarioMetric

    @property
    def text(self) -> str:
        """The label with both values."""
        before, after = self.change.before or 0.0, self.change.after or 0.0
        return f"{self.label} {numbers.format_pair(self.write, before, after, self.digits)}"

    @property
    def rose(self) -> bool:
        """Whether it is higher than before."""
        return (self.change.after or 0.0) > (self.change.before or 0.0)


def _format_tokens(value: float, _digits: int) -> str:
    return format_count(value)


def _list_metric_figures(found: Comparison) -> Iterator[_Figure]:
    """Yield the figures that are compared; tokens only where the cost is unknown."""
    if found.cost_usd.after is not None:
        money = numbers.format_money
        yield _Figure("cost per episode", found.cost_usd, money, numbers.SIGNIFICANT, "cost_usd")
    else:
        yield _Figure("tokens per episode", found.tokens, _format_tokens, 0, "tokens")
    latency = numbers.format_latency
    yield _Figure("p95 turn latency", found.p95_latency_ms, latency, 1, "typical_latency_ms")


_MORE: dict[ScenarioMetric, tuple[str, str]] = {
    "cost_usd": ("costs more", "cost more"),
    "tokens": ("takes more tokens", "take more tokens"),
    "typical_latency_ms": ("is slower", "are slower"),
}
_LESS: dict[ScenarioMetric, tuple[str, str]] = {
    "cost_usd": ("costs less", "cost less"),
    "tokens": ("takes fewer tokens", "take fewer tokens"),
    "typical_latency_ms": ("is faster", "are faster"),
}


class ComparisonChanges:
    """Lists the changes of a comparison."""

    def __init__(self, report: Report, found: Comparison) -> None:
        self._report = report
        self._found = found
        self._is_broken = is_broken(report)
        self._over_budget = {
            get_key(item.scenario) for item in report.judged_scenarios() if item.is_over_budget
        }
        self._compared = [
            s for s in found.scenarios if s.before is not None and s.after is not None
        ]

    def list_worse(self) -> Iterator[Phrase]:
        """Yield the certain changes for the worse."""
        yield from self._describe_crashes()
        yield from self._describe_pass_rate()
        for change in self._found.suite:
            if change.fell and change.measure != "pass_rate":
                pair = (format_suite_mean(change, mean) for mean in (change.before, change.after))
                yield (f"{SUITE_MEASURES[change.measure]} {' → '.join(pair)}",)
        if not self._is_broken:
            yield from self._list_figures(rose=True)
            yield from self._list_scenario_changes(rose=True)

    def _describe_crashes(self) -> Iterator[Phrase]:
        crashed = list_crashed(self._report)
        before = [one.before for one in crashed if one.before is not None]
        if before:
            passed, judged = (
                format_count(sum(counts))
                for counts in ([b.passed for b in before], [b.judged for b in before])
            )
            crash = "scenario crashes" if len(crashed) == 1 else "scenarios crash"
            yield (f"{format_count(len(crashed))} {crash} now ({passed}/{judged} before)",)

    def list_better(self) -> Iterator[Phrase]:
        """Yield the certain improvements, and the scenarios that pass again."""
        change = self._find_suite_rate()
        if change is not None and change.difference < 0:
            change = None
        if change is not None and change.find_certainty(self._found.suite_level) == "certain":
            yield from self._write_pass_rate(change.before, change.after)
        if not self._is_broken:
            yield from self._list_figures(rose=False)
            yield from self._list_scenario_changes(rose=False)
        fixed = sorted(self._found.filter_by_change("fixed"), key=_natural_key)
        if len(fixed) == 1:
            yield (*_name(fixed[0]), f" passes again, {format_passes(fixed[0])}")
        elif fixed:
            names = [(*_name(one), f" {format_passes(one)}") for one in fixed]
            count = count_noun(len(fixed), "scenario")
            yield (f"{count} pass again: ", *join_first(names, MOST_NAMES))

    def _find_suite_rate(self) -> SuiteChange | None:
        changes = (one for one in self._found.suite if one.measure == "pass_rate")
        return next(changes, None)

    def _describe_pass_rate(self) -> Iterator[Phrase]:
        """Yield the suite's pass rate if it or a scenario's fell for certain."""
        suite, moved = self._find_suite_rate(), self._found.pass_rate
        certain = self._found.filter_by_decision("regression")
        fell = suite is not None and suite.fell
        if fell and suite is not None and not certain:
            yield from self._describe_spread(suite)
        elif (fell or certain) and moved.before is not None and moved.after is not None:
            rates = list(self._write_pass_rate(moved.before, moved.after))
            if moved.after < moved.before and rates:
                yield (*rates[0], *self._describe_share_of_drop())
            else:
                names = [(*_name(one), f" {format_passes(one)}") for one in certain]
                passes = "passes" if len(names) == 1 else "pass"
                yield (*join_first(names, MOST_NAMES), f", {passes} less often")

    def _write_pass_rate(self, before: float, after: float) -> Iterator[Phrase]:
        if abs(after - before) >= LEAST_POINTS:
            yield (f"pass rate {numbers.format_pair(numbers.format_share, before, after, 0)}",)

    def _describe_spread(self, suite: SuiteChange) -> Iterator[Phrase]:
        """Yield how many scenarios a drop of the whole suite comes from."""
        less = [one for one in self._compared if passes_less_often(one)]
        more = [one for one in self._compared if _passes_more_often(one)]
        others = f", {format_count(len(more))} more often" if more else ""
        alone = any(item.judgement.fails_alone for item in self._report.required_scenarios)
        pair = numbers.format_pair(numbers.format_share, suite.before, suite.after, 0)
        part = f"{format_count(len(less))} of {count_noun(len(self._compared), 'scenario')}"
        verb = "passes" if len(less) == 1 else "pass"
        itself = "" if alone else "; none fails by itself"
        yield (f"pass rate {pair}: {part} {verb} less often{others}{itself}",)

    def _describe_share_of_drop(self) -> Phrase:
        """Say which scenario or renamed tool all of a drop comes from; empty: none."""
        less = [one for one in self._compared if passes_less_often(one)]
        if len(less) == 1:
            return (", all of it in ", *_name(less[0]))
        groups = group_failures(self._report)
        for rename in self._found.tool_renames if len(groups) == 1 else ():
            if rename.before in groups[0].first.cause.name:
                return (", only by checks that name the tool ", Quoted(rename.before))
        return ()

    def _list_figures(self, *, rose: bool) -> Iterator[Phrase]:
        for figure in _list_metric_figures(self._found):
            if is_notable(figure.change) and figure.rose is rose:
                changes = self._collect(figure.scenario_metric, rose=rose)
                few = changes if len(changes) <= MOST_IN else []
                most = join_phrases(map(_write_factor, few), " and ")
                yield (figure.text, ", most in ", *most) if most else (figure.text,)

    def _list_scenario_changes(self, *, rose: bool) -> Iterator[Phrase]:
        """Yield the scenarios whose metric changed for certain, unless its figure names them."""
        figures = {
            figure.scenario_metric
            for figure in _list_metric_figures(self._found)
            if is_notable(figure.change) and figure.rose is rose
        }
        for metric, (one, many) in (_MORE if rose else _LESS).items():
            changes = self._collect(metric, rose=rose)
            if changes and (metric not in figures or len(changes) > MOST_IN):
                verb = one if len(changes) == 1 else many
                scenarios = count_noun(len(changes), "scenario")
                names = [_write_factor_plain(change) for change in changes]
                yield (f"{scenarios} {verb}: ", *join_first(names, MOST_NAMES))

    def _collect(self, metric: ScenarioMetric, *, rose: bool) -> list[_ScenarioChange]:
        """Return the scenarios with a certain change of a metric, the largest factor first."""
        found = [
            _ScenarioChange(scenario, change.before, change.after)
            for scenario in self._found.scenarios
            for change in _list_metric_changes(scenario, rose=rose)
            if change.metric == metric
        ]
        return sorted(found, key=lambda one: (-one.distance, _natural_key(one.scenario)))

    def list_different(self) -> Iterator[Phrase]:
        """Yield how the agent behaves differently, and how far that reaches."""
        for changed in self._found.changed_conditions:
            if changed.difference.condition != "tools":
                yield describe_condition(changed)
        for instructions in self._report.instruction_changes:
            scenarios = count_noun(len(instructions.scenarios), "scenario")
            yield (*name_change(instructions), f" changed in {scenarios}")
        yield from map(describe_rename, self._found.tool_renames)
        silent = {_key(one) for one in self._compared if _stopped_calling(one)}
        if silent:
            yield ("no tool is called any more in ", *self._name_or_count(silent))
        for tool in self._found.tool_changes:
            if not silent or tool.after > tool.before:
                yield describe_tool(tool)
        if self._is_broken:
            yield from self._describe_early_ends()
        yield from self._describe_other_calls(silent)
        yield from self._list_suite_members()

    def _describe_other_calls(self, silent: set[ScenarioKey]) -> Iterator[Phrase]:
        """Yield the scenarios that behave otherwise, and that the others do not."""
        known = [one for one in self._compared if one.behaviour is not None]
        other = [one for one in known if _makes_other_calls(one)]
        listed = [one for one in other if _key(one) not in silent]
        passing = [one for one in listed if self._passes(one)]
        failing = [one for one in listed if not self._passes(one)]
        if failing:
            yield ("the tool calls in ", *_join_names(failing))
        if passing:
            makes, passes = ("makes", "passes") if len(passing) == 1 else ("make", "pass")
            scenarios = count_noun(len(passing), "scenario")
            yield (f"{scenarios} {makes} other tool calls and still {passes}",)
        changed = {_key(one) for one in other}
        if not other and not self._found.tool_renames and not self._found.tool_changes:
            changed = self._find_failing()
            if changed:
                yield ("the answer in ", *self._name_or_count(changed))
        yield from self._describe_reach(known, changed)

    def _passes(self, scenario: ScenarioComparison) -> bool:
        after = scenario.after
        return after is not None and bool(after.passing) and _key(scenario) not in self._over_budget

    def _find_failing(self) -> set[ScenarioKey]:
        """Return the compared scenarios that fail now and passed before."""
        compared = {_key(one) for one in self._compared}
        groups = group_failures(self._report)
        failing = [one for group in groups for one in group.scenarios if one.history == "new"]
        return {get_key(one.scenario) for one in failing} & compared

    def _name_or_count(self, keys: set[ScenarioKey]) -> Phrase:
        if len(keys) > MOST_NAMES:
            return (count_noun(len(keys), "scenario"),)
        return _join_names([one for one in self._compared if _key(one) in keys])

    def _describe_reach(
        self, known: Sequence[ScenarioComparison], changed: set[ScenarioKey]
    ) -> Iterator[Phrase]:
        """Yield how many scenarios make the same calls as before, as far as anything changed."""
        renames = {rename.after: rename.before for rename in self._found.tool_renames}
        same = [one for one in known if _has_same_calls(one, renames) and _key(one) not in changed]
        if not same:
            return
        if renames and len(same) == len(known):
            yield ("every other call is as before",)
        elif changed or renames:
            whole = "the other " if len(same) == len(known) - len(changed) else ""
            count = "" if whole and len(same) == 1 else f"{format_count(len(same))} "
            scenario = "scenario makes" if len(same) == 1 else "scenarios make"
            yield (f"{whole}{count}{scenario} the same tool calls as before",)
        elif unjudged := list_unjudged(self._report):
            rest = count_noun(len(self._report.summary.scenarios) - len(unjudged), "scenario")
            passing = all(one.after is not None and one.after.passing for one in same)
            as_before = "; they pass as before" if passing else ""
            yield (f"nothing in the other {rest}{as_before}",)

    def _describe_early_ends(self) -> Iterator[Phrase]:
        """Yield that episodes end earlier or later, and so cost less or more."""
        turns, cost = self._found.turns, self._found.cost_usd
        if list_unjudged(self._report):
            return  # errors ended them
        if turns.before is None or turns.after is None or turns.certainty != "certain":
            return
        after, before = f"{turns.after:.1f}", f"{turns.before:.1f}"
        text = f"episodes end after {after} turns (before: {before})"
        if is_notable(cost) and cost.before and cost.after is not None:
            share = cost.after / cost.before - 1
            text += f", so they cost {abs(share) * 100:.0f} % {'more' if share > 0 else 'less'}"
        yield (text,)

    def _list_suite_members(self) -> Iterator[Phrase]:
        """Yield the scenarios that are new, gone or renamed."""
        groups = (
            ("new", self._found.filter_by_change("new")),
            ("vanished", self._found.filter_by_change("vanished")),
            ("moved", tuple(s for s in self._found.scenarios if s.moved is not None)),
            ("renamed", tuple(s for s in self._found.scenarios if s.renamed_from is not None)),
        )
        for words, scenarios in groups:
            if scenarios:
                count = count_noun(len(scenarios), f"{words} scenario")
                yield (f"{count}: ", *_join_names(scenarios), *_describe_move(words, scenarios))


@dataclass(frozen=True, slots=True)
class _ScenarioChange:
    """A metric of a scenario on both sides."""

    scenario: ScenarioComparison
    before: float
    after: float

    @property
    def factor(self) -> float:
        """After over before; infinite from nothing."""
        return self.after / self.before if self.before else float("inf")

    @property
    def distance(self) -> float:
        """The size of the change, whatever its direction."""
        return max(self.factor, 1 / self.factor) if self.factor else float("inf")

    @property
    def text(self) -> str:
        """The factor."""
        return numbers.format_factor(self.factor) if self.before else "from nothing"


def _list_metric_changes(
    scenario: ScenarioComparison, *, rose: bool
) -> Iterable[ScenarioIncrease | ScenarioDecrease]:
    return scenario.increases if rose else scenario.decreases


def _write_factor(change: _ScenarioChange) -> Phrase:
    return (*_name(change.scenario), f" ({change.text})")


def _write_factor_plain(change: _ScenarioChange) -> Phrase:
    return (*_name(change.scenario), f" {change.text}")


def _makes_other_calls(scenario: ScenarioComparison) -> bool:
    changed = scenario.behaviour is not None and scenario.behaviour.changed
    return changed or scenario.divergence is not None


def _has_same_calls(scenario: ScenarioComparison, renames: dict[str, str]) -> bool:
    found = scenario.behaviour
    if found is None:
        return False
    after = tuple(renames.get(tool, tool) for tool in found.typical_after)
    return after == found.typical_before


def _passes_more_often(scenario: ScenarioComparison) -> bool:
    sides = (scenario.before, scenario.after)
    before, after = (None if one is None else one.pass_rate for one in sides)
    return before is not None and after is not None and after > before


def _stopped_calling(scenario: ScenarioComparison) -> bool:
    found = scenario.behaviour
    return found is not None and bool(found.typical_before) and not found.typical_after


def _key(scenario: ScenarioComparison) -> ScenarioKey:
    return scenario.scenario_id, scenario.agent


def _natural_key(scenario: ScenarioComparison) -> list[tuple[int, str]]:
    return build_natural_key(scenario.scenario_id)


def _describe_move(words: str, scenarios: Sequence[ScenarioComparison]) -> Phrase:
    """Return the files of a single moved scenario; nothing for others."""
    if words != "moved" or len(scenarios) > 1 or scenarios[0].moved is None:
        return ()
    before, now = scenarios[0].moved
    return (" from ", Quoted(before, NAME_LIMIT), " to ", Quoted(now, NAME_LIMIT))


def _join_names(scenarios: Sequence[ScenarioComparison]) -> Phrase:
    ordered = sorted(scenarios, key=_natural_key)
    return join_first([_name(one) for one in ordered], MOST_NAMES)


def _name(scenario: ScenarioComparison) -> Phrase:
    return (Quoted(scenario.scenario_id, NAME_LIMIT),)
