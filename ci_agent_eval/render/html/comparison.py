"""The comparison with the baseline on the page: figures, and both sides of each scenario."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ci_agent_eval.analysis.comparison.model import (
    ConditionDifference,
    ConversationSample,
    ScenarioComparison,
    ScenarioMetrics,
)
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.render import numbers
from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.comparison_view import (
    CHANGES,
    ComparisonRow,
    ComparisonView,
)
from ci_agent_eval.render.html.episodes import ValueCutter
from ci_agent_eval.render.html.page_limits import PageText, drop_empty, embed_json
from ci_agent_eval.render.numbers import format_count
from ci_agent_eval.render.phrases import ScenarioKey, get_key
from ci_agent_eval.render.report_view import ReportView

_FIGURES: tuple[
    tuple[str, Callable[[ScenarioMetrics], float | None], Callable[[float], str]], ...
] = (
    ("pass rate", lambda side: side.pass_rate, numbers.format_percent),
    ("cost per episode", lambda side: side.cost_usd, numbers.format_money),
    ("tokens per episode", lambda side: side.tokens, format_count),
    ("tool calls per episode", lambda side: side.tool_calls, numbers.format_amount),
    ("p95 turn latency", lambda side: side.p95_latency_ms, numbers.format_milliseconds),
)

_CHIPS = {"newly_failing": "failed", "vanished": "failed", "still_failing": "failed"}


Part = dict[str, Any]
"""A part of the comparison, as the template reads it."""
Findings = Sequence[BaselineFinding]


def build_page_comparison(
    view: ReportView, found: ComparisonView, texts: PageText, conversations: BaselineConversations
) -> Part:
    """Return the page's comparison."""
    against: dict[ScenarioKey | None, list[BaselineFinding]] = {}
    for finding in view.baseline_findings:
        against.setdefault(finding.key, []).append(finding)
    pairs = ((row, tuple(against.get(row.key, ()))) for row in found.scenarios)
    ordered = sorted(pairs, key=lambda pair: _rank_row(*pair))
    listed = [(row, findings) for row, findings in ordered if findings or _is_shown(row)]
    return Part(
        label=texts.name(found.label),
        method=found.method,
        conditions=[
            replace(row, before=texts.name(row.before), after=texts.name(row.after))
            for row in found.changed_conditions
        ],
        tools=[
            replace(
                row,
                tool=texts.name(row.tool),
                renamed_to=texts.name(row.renamed_to) if row.renamed_to else None,
            )
            for row in texts.first(found.tools)
        ],
        figures=view.compared_figures,
        pairs=[
            _build_pair(row, texts, findings, conversations)
            for row, findings in texts.first(listed)
        ],
        unchanged=len(found.scenarios) - len(listed),
    )


_TURNS = list(CHANGES)
_CALLS = ("regression", "unconfirmed", "undecided")


def _rank_row(row: ComparisonRow, against: Findings) -> tuple[bool, float, int]:
    """Return the rank of a row: those that gate first, then by test results and checks."""
    scenario = row.scenario
    call = _CALLS.index(scenario.call) if scenario.call in _CALLS else len(_CALLS)
    change = _TURNS.index(scenario.change) if scenario.change in _TURNS else len(_TURNS)
    over = bool(scenario.newly_over) / 2
    is_gating = any(f.gates for f in against) or scenario.change == "newly_failing"
    return not is_gating, call if _is_failing(row) else len(_CALLS) + 1 - over, change


def _is_failing(row: ComparisonRow) -> bool:
    return row.scenario.call in _CALLS or row.scenario.change in _CHIPS


def _is_shown(row: ComparisonRow) -> bool:
    scenario = row.scenario
    facts = (
        scenario.divergence,
        scenario.increases,
        scenario.newly_over,
        scenario.renamed_from,
        scenario.differences,
        scenario.weaker_demands,
        scenario.lower_scores,
    )
    warnings = scenario.is_downgraded, scenario.thinned, scenario.flakier
    return scenario.change != "unchanged" or scenario.call in _CALLS or any((*facts, *warnings))


def _list_chips(row: ComparisonRow, against: Findings) -> Iterator[tuple[str, str]]:
    scenario = row.scenario
    # "Still passing" beside a finding would contradict it.
    if scenario.change != "unchanged" or not (row.call or against):
        plain = "passed" if scenario.change == "fixed" else "plain"
        yield _CHIPS.get(scenario.change, plain), row.change
    findings: dict[str, BaselineFinding] = {finding.kind: finding for finding in against}
    if row.call:
        # A scenario that fails without the baseline has no finding of its pass rate.
        found = findings.get(scenario.call)
        gates_by_rate = found.gates if found else scenario.required and scenario.change in _CHIPS
        yield "failed" if gates_by_rate and scenario.call == "regression" else "warning", row.call
    for kind, finding in findings.items():
        if kind not in {*_CALLS, scenario.change}:
            yield "failed" if finding.gates else "warning", finding.label
    if scenario.newly_over:
        yield "warning", "newly over budget"


def _build_pair(
    row: ComparisonRow, texts: PageText, against: Findings, conversations: BaselineConversations
) -> Part:
    scenario, diff = row.scenario, row.diff
    return Part(
        name=texts.name(scenario.scenario_id),
        agent=texts.name(scenario.agent) if scenario.agent else None,
        chips=list(_list_chips(row, against)),
        certainty=row.certainty,
        passes=(row.before, row.now),
        figures=_list_figures(row),
        incomparable=_describe_incomparable(row),
        differences=[
            ConditionDifference(d.condition, texts.text(d.before), texts.text(d.after))
            for d in scenario.differences
        ],
        newly_over=[texts.name(name) for name in texts.first(scenario.newly_over)],
        renamed_from=texts.name(scenario.renamed_from) if scenario.renamed_from else None,
        place=_describe_place(row),
        before=_build_steps(diff.before, diff.call, texts) if diff else [],
        after=_build_steps(diff.after, diff.call, texts) if diff else [],
        shares=(diff.share_before, diff.share_after) if diff else ("", ""),
        talks=conversations.find_pair(scenario) if row.is_changed else {},
        opened=any(finding.gates for finding in against) or _is_failing(row),
    )


def _describe_incomparable(row: ComparisonRow) -> str:
    if row.scenario.change == "not_comparable":
        return "Not comparable"
    return row.set_aside[:1].upper() + row.set_aside[1:]


def _list_figures(row: ComparisonRow) -> list[tuple[str, str, str]]:
    rows, sides = [], (row.scenario.before, row.scenario.after)
    for name, figure, write in _FIGURES:
        before, now = (
            numbers.format_cell(None if side is None else figure(side), write) for side in sides
        )
        if before.value is not None or now.value is not None:
            rows.append((name, before.text, now.text))
    return rows


def _describe_place(row: ComparisonRow) -> str:
    if row.diff is None:
        return ""
    episodes = f", {row.diff.episodes}" if row.diff.episodes else ""
    return f"First divergence at {row.diff.place}{episodes}"


def _build_steps(names: Sequence[str], call: int, texts: PageText) -> list[Part]:
    return [
        Part(tool=texts.name(name), parted=number == call)
        for number, name in enumerate(texts.first(names), start=1)
    ]


Numbered = tuple[int, EpisodeRecord]


class BaselineConversations:
    """Finds both conversations of a scenario until their share of the page is used up.

    `samples` are of the baseline, `episodes` of this run, in the order of the page.
    """

    def __init__(
        self,
        samples: Iterable[ConversationSample],
        episodes: Iterable[EpisodeRecord],
        texts: PageText,
    ) -> None:
        self._texts = texts
        self._left = texts.caps.baseline
        self._samples: Mapping[ScenarioKey, list[ConversationSample]] = defaultdict(list)
        for sample in samples:
            self._samples[sample.scenario_id, sample.agent].append(sample)
        self._episodes: Mapping[ScenarioKey, list[Numbered]] = defaultdict(list)
        for number, facts in enumerate(episodes, start=1):
            self._episodes[facts.scenario_id, facts.agent or None].append((number, facts))

    def find_pair(self, scenario: ScenarioComparison) -> dict[str, Any]:
        """Return both as the page's script reads them; empty without one in the baseline."""
        sample = _pick_sample(self._of_base(scenario), scenario)
        if sample is None:
            return {}
        now = _pick_episode(self._episodes.get(get_key(scenario), ()), scenario)
        row = {
            "iteration": sample.iteration,
            "outcome": sample.outcome,
            "turns": self._turns(sample),
            "now": now,
        }
        return drop_empty(row)

    def _of_base(self, scenario: ScenarioComparison) -> Sequence[ConversationSample]:
        name = scenario.renamed_from or scenario.scenario_id
        found = self._samples.get((name, scenario.agent), ())
        # An agent that is called otherwise now is the same where it is the only one.
        return found or [s for key, ss in self._samples.items() if key[0] == name for s in ss]

    def _turns(self, sample: ConversationSample) -> list[dict[str, Any]] | None:
        if sample.turns is None or self._left <= 0:
            self._texts.cut.conversations += 1
            return None
        turns: list[dict[str, Any]] = ValueCutter(self._texts).cut(json.loads(sample.turns))
        self._left -= len(embed_json(turns))
        return turns


def _find_failing_sides(scenario: ScenarioComparison) -> tuple[bool, bool]:
    """Return for each side whether to show a failed episode."""
    before, after = scenario.before, scenario.after
    rates = (before.pass_rate if before else None, after.pass_rate if after else None)
    was, now = (1.0 if rate is None else rate for rate in rates)
    still_fails = after is not None and after.passing is False
    return was < now or scenario.change == "still_failing", now < was or still_fails


def _pick_sample(
    found: Sequence[ConversationSample], scenario: ScenarioComparison
) -> ConversationSample | None:
    failing = _find_failing_sides(scenario)[0]
    way = scenario.divergence.before if scenario.divergence else None
    wanted = [s for s in found if (s.outcome == "failed") is failing] or found
    same = (s for s in wanted if way is None or s.tools == way)
    return next(same, next(iter(wanted), None))


def _pick_episode(found: Sequence[Numbered], scenario: ScenarioComparison) -> int | None:
    outcome = "failed" if _find_failing_sides(scenario)[1] else "passed"
    way = scenario.divergence.after if scenario.divergence else None
    wanted = [one for one in found if one[1].outcome == outcome] or found
    same = (n for n, f in wanted if way is None or f.tools == way)
    return next(same, next((number for number, _ in wanted), None))
