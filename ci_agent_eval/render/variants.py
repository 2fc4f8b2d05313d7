"""Words about variants: agents, prompts or models side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.variants import (
    MOST_COMPARED,
    VariantFigure,
    VariantMeasure,
    VariantPair,
    VariantScenario,
)
from ci_agent_eval.render import numbers
from ci_agent_eval.render.escape import cut_middle
from ci_agent_eval.render.numbers import count_noun, format_count

NAME_LIMIT = 60
"""Characters of a variant's name."""

MOST_PAIRS = 5
"""Pairs that are shown; the others are counted."""

_METHOD = (
    "Means over the scenarios that both measured, each counted once; differences with their 95 % "
    "interval. If variants are equal, any difference is called certain in at most 5 % of runs. "
    "With fewer than 5 scenarios, pass rates are tested in each scenario alone. "
    "Of adaptive iterations, pass rates count those that always run. "
    "Variants that ran one after the other may differ in latency by what warmed up between them. "
    "The gate does not depend on these differences."
)


@dataclass(frozen=True, slots=True)
class VariantRow:
    """A measure of two variants."""

    label: str
    first: str
    second: str
    difference: str
    """The second one minus the first, or in percent of the first."""
    certainty: str
    """How certain the difference is; empty if there is none."""


@dataclass(frozen=True, slots=True)
class VariantScenarioRow:
    """Passes of two variants in a scenario."""

    name: str
    """Foreign text."""
    first: str
    second: str
    certainty: str
    """`certain` if the pass rates differ by more than chance; else empty."""


@dataclass(frozen=True, slots=True)
class VariantTable:
    """Two variants side by side."""

    first: str
    """Foreign text, as is `second`, cut so that different names stay different."""
    second: str
    population: str
    """The number of scenarios that both ran."""
    rows: Sequence[VariantRow]
    scenarios: Sequence[VariantScenarioRow]
    """Those that differ first."""


@dataclass(frozen=True, slots=True)
class VariantsView:
    """All variants of a run."""

    title: str
    tables: Sequence[VariantTable]
    rest: str
    """How many pairs are not shown, and how many variants not compared; empty: all are."""
    method: str = _METHOD


def build_variants_view(pairs: Sequence[VariantPair], agents: set[str]) -> VariantsView:
    """Return the view of the pairs of a run, which has one or more.

    `agents` are the names of all variants, compared or not.
    """
    names = {name for pair in pairs for name in (pair.first, pair.second)}
    rest, left_out = len(pairs) - MOST_PAIRS, len(agents - names)
    notes = (
        f"and {count_noun(rest, 'more pair')}, in verdict.json" if rest > 0 else "",
        f"{count_noun(left_out, 'variant')} not compared: without judged iterations, or after the "
        f"first {MOST_COMPARED} pairs"
        if left_out
        else "",
    )
    shortened = shorten_names(sorted(names), NAME_LIMIT)
    return VariantsView(
        f"{count_noun(len(names), 'variant')} side by side",
        tuple(_build_table(pair, shortened) for pair in pairs[:MOST_PAIRS]),
        "; ".join(filter(None, notes)),
    )


def shorten_names(names: Sequence[str], limit: int) -> Mapping[str, str]:
    """Return each name cut in its middle, with a number in front if others are cut to the same."""
    cut = {name: cut_middle(name, limit) for name in names}
    counts = Counter(cut.values())
    return {
        name: shown if counts[shown] == 1 else f"{number}: {shown}"
        for number, (name, shown) in enumerate(cut.items(), 1)
    }


def _build_table(pair: VariantPair, names: Mapping[str, str]) -> VariantTable:
    ordered = sorted(pair.scenarios, key=lambda scenario: not scenario.differs)
    return VariantTable(
        names[pair.first],
        names[pair.second],
        count_noun(len(pair.scenarios), "scenario"),
        tuple(_build_row(figure, len(pair.scenarios)) for figure in pair.figures),
        tuple(map(_build_scenario_row, ordered)),
    )


def _build_scenario_row(scenario: VariantScenario) -> VariantScenarioRow:
    write = _format_first if scenario.adaptive else numbers.format_part
    return VariantScenarioRow(
        scenario.scenario_id,
        write(scenario.first_passed, scenario.first_judged),
        write(scenario.second_passed, scenario.second_judged),
        "certain" if scenario.differs else "",
    )


def _format_first(passed: int, judged: int) -> str:
    return f"{format_count(passed)} of the first {format_count(judged)}"


_FORMATS: Mapping[VariantMeasure, tuple[str, Callable[[float, int], str], int]] = {
    "pass_rate": ("pass rate", numbers.format_share, 1),
    "score": ("score", numbers.format_score, numbers.SIGNIFICANT),
    "cost_usd": ("cost per episode", numbers.format_money, numbers.SIGNIFICANT),
    "tokens": ("tokens per episode", numbers.format_amount, 0),
    "typical_latency_ms": ("typical turn latency", numbers.format_milliseconds, 1),
}
"""Label, format and digits of each measure."""


def _build_row(figure: VariantFigure, scenarios: int) -> VariantRow:
    label, write, digits = _FORMATS[figure.measure]
    if figure.scenarios < scenarios:
        label += f" (in {figure.scenarios} of {scenarios})"
    first, second = numbers.format_distinct(write, figure.first, figure.second, digits)
    difference = _describe_difference(figure)
    certainty = "" if figure.first == figure.second else _describe_certainty(figure, scenarios)
    return VariantRow(label, first, second, difference, certainty)


def _describe_certainty(figure: VariantFigure, scenarios: int) -> str:
    if figure.differs:
        return "certain"
    is_rate = figure.measure == "pass_rate"
    if figure.interval is not None or (is_rate and scenarios == 1):
        return "inconclusive"
    return "tested in each scenario" if is_rate else "not tested"


def _describe_difference(figure: VariantFigure) -> str:
    change = figure.second - figure.first
    if figure.measure == "pass_rate":
        return numbers.format_points(change, figure.interval)
    if figure.measure == "score":
        return numbers.format_score_change(change, figure.interval)
    return numbers.format_change(figure.first, figure.second, figure.interval)
