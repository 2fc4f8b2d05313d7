"""Cards of budgets that were exceeded or not measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from ci_agent_eval.analysis.behaviour_pairs import BehaviourPair
from ci_agent_eval.analysis.comparison.model import (
    ScenarioComparison,
)
from ci_agent_eval.analysis.failure_causes import (
    CauseRole,
)
from ci_agent_eval.contract.wording import build_natural_key
from ci_agent_eval.gate.failure_groups import group_failures, index_comparison
from ci_agent_eval.render import numbers
from ci_agent_eval.render.behaviour_diff import list_diff_lines, list_trajectory_lines
from ci_agent_eval.render.budget_overruns import BudgetOverrun
from ci_agent_eval.render.cards.model import (
    CardFacts,
    CauseCard,
    DiffBlock,
    ListBlock,
)
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.phrases import (
    NAME_LIMIT,
    Phrase,
    Quoted,
    ScenarioKey,
    Strong,
    get_key,
    join_phrases,
    quote_name,
)
from ci_agent_eval.render.scenario_rows import ScenarioRow


def build_budget_cards(facts: CardFacts) -> Iterator[CauseCard]:
    """Yield a card for each scenario over budget, or for several over the same budgets.

    A scenario that fails the gate alone has them in the card of its failure, see `list_overruns`.
    The card of another scenario that fails has no diff: the card of its failure shows one.
    """
    compared = index_comparison(facts.report)
    groups_of_failures = group_failures(facts.report)
    failing = {get_key(one.scenario) for group in groups_of_failures for one in group.scenarios}
    alone = {
        get_key(group.first.scenario)
        for group in groups_of_failures
        if group.role == "gates" and len(group.scenarios) == 1
    }
    pairs = {(pair.scenario_id, pair.agent): pair for pair in facts.report.pairs}
    found: dict[ScenarioKey | None, list[BudgetOverrun]] = {}
    rows = {row.key: row for row, _ in facts.overruns if row is not None}
    for row, overrun in facts.overruns:
        found.setdefault(None if row is None else row.key, []).append(overrun)
    groups: dict[tuple[bool, tuple[str, ...]], list[ScenarioKey]] = {}
    for key, overruns in found.items():
        if key in alone:
            continue
        if key is None:
            yield from _build_suite_budget_cards(overruns)
        else:
            gates = any(one.gates for one in overruns)
            labels = tuple(one.label for one in overruns)
            groups.setdefault((gates, labels), []).append(key)
    for (gates, _), keys in groups.items():
        keys.sort(key=lambda key: (build_natural_key(key[0]), key[1] or ""))
        role: CauseRole = "gates" if gates else "warns"
        lines = [_write_overruns(facts, rows[key], found[key], compared.get(key)) for key in keys]
        if len(keys) == 1:
            pair, change = pairs.get(keys[0]), compared.get(keys[0])
            diff = () if keys[0] in failing else _list_call_lines(pair, change)
            body = [DiffBlock(diff, pair)] if diff else ()
            example = facts.build_example(rows[keys[0]])
            yield CauseCard(role, lines[0], body, frozenset(keys), example)
        else:
            head: Phrase = (Strong(count_noun(len(keys), "scenario")), " over budget")
            summary = join_phrases([head, ("for example ", *lines[0])], " · ")
            example = facts.build_example(rows[keys[0]])
            yield CauseCard(role, summary, [ListBlock(lines)], frozenset(keys), example)


def list_overruns(facts: CardFacts, key: ScenarioKey) -> Iterator[Phrase]:
    """Yield a line if a scenario is over budgets, for the card of its failure."""
    found = [one for row, one in facts.overruns if row is not None and row.key == key]
    if found:
        compared = index_comparison(facts.report).get(key)
        texts = [one.describe(_find_former_value(one, compared)) for one in found]
        yield ("over budget: ", *join_phrases(texts, ", "))


def _list_call_lines(
    pair: BehaviourPair | None, compared: ScenarioComparison | None
) -> Sequence[str]:
    if pair is not None:
        return list_diff_lines(pair, only_calls=True)
    divergence = None if compared is None else compared.divergence
    return () if divergence is None else list_trajectory_lines(divergence)


def _write_overruns(
    facts: CardFacts,
    row: ScenarioRow,
    overruns: Sequence[BudgetOverrun],
    compared: ScenarioComparison | None,
) -> Phrase:
    texts = [one.describe(_find_former_value(one, compared)) for one in overruns]
    head: Phrase = (*quote_name(row.name), " ", *join_phrases(texts, ", "))
    has_own_measure = all(one.is_custom for one in overruns)
    grown = () if has_own_measure else _describe_growth(compared)
    return join_phrases(
        [head, grown, facts.quote_links(row.scenario.scenario_id, row.place)], " · "
    )


def _describe_growth(compared: ScenarioComparison | None) -> Phrase:
    """Return `search_docs 1 → 8 calls` of the tool that is called most often beyond before."""
    divergence = None if compared is None else compared.divergence
    if divergence is None:
        return ()
    now, before = Counter(divergence.after), Counter(divergence.before)
    grown = now - before
    if not grown:
        return ()
    tool = max(sorted(grown), key=grown.__getitem__)
    calls = count_noun(now[tool], "call")
    return (Quoted(tool, NAME_LIMIT), f" {format_count(before[tool])} → {calls}")


def _find_former_value(overrun: BudgetOverrun, compared: ScenarioComparison | None) -> str:
    """Return the baseline's value of a budget's measure; empty: unknown."""
    before = None if compared is None else compared.before
    if before is None:
        return ""
    values: dict[str, tuple[float | None, Callable[[float], str]]] = {
        "tool_calls": (before.tool_calls, numbers.format_amount),
        "cost_usd": (before.cost_usd, numbers.format_money),
        "token_usage": (before.tokens, format_count),
    }
    value, write = values.get(overrun.budget, (None, format_count))
    return "" if value is None else write(value)


def _build_suite_budget_cards(overruns: Sequence[BudgetOverrun]) -> Iterator[CauseCard]:
    for overrun in overruns:
        yield CauseCard(
            "gates" if overrun.gates else "warns", ("whole suite, ", *overrun.describe())
        )
