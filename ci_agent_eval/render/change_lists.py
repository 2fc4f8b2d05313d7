"""What a change did to the agent, in lists: unknown, worse, better, different.

Worse and better hold only certain changes. `docs/decisions/0055-comment-by-cause.md` explains the
choices.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.analysis.comparison.model import Comparison, NoBaseline
from ci_agent_eval.contract.findings import MissingShards
from ci_agent_eval.gate.failure_groups import list_crashed, list_unjudged
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render import numbers
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.phrases import (
    MOST_NAMES,
    NAME_LIMIT,
    Phrase,
    Quoted,
    get_key,
    join_first,
    measure_phrase,
)

ChangeKind = Literal["unknown", "not_compared", "now", "worse", "better", "different", "unchanged"]

MOST_ITEMS = 3
MAX_LENGTH = 200
"""Characters of a list."""


@dataclass(frozen=True, slots=True)
class ChangeList:
    """One line about the change: its kind, and the items that fit."""

    kind: ChangeKind
    text: Phrase


def build_change_lists(report: Report, label: str) -> tuple[ChangeList, ...]:
    """Return the lists that have an item; `label` is the baseline's name."""
    found = report.comparison
    lists = [
        ChangeList("unknown", _join_items(list(_list_unknown(report)), "; ", "unknown")),
        *_list_not_compared(report),
    ]
    if isinstance(found, Comparison):
        from ci_agent_eval.render.comparison_changes import (  # noqa: PLC0415 - only with a baseline
            ComparisonChanges,
        )

        changes = ComparisonChanges(report, found)
        lists += [
            ChangeList("worse", _join_items(list(changes.list_worse()), " · ")),
            ChangeList("better", _join_items(list(changes.list_better()), " · ")),
            ChangeList("different", _join_items(list(changes.list_different()), "; ")),
        ]
        if not any(one.text for one in lists):
            unchanged: Phrase = ("No certain change against ", Quoted(label), ".")
            lists = [ChangeList("unchanged", unchanged)]
    return tuple(one for one in lists if one.text)


def _join_items(items: Sequence[Phrase], separator: str, noun: str = "change") -> Phrase:
    """Join the first items that fit, at least one, and count the others."""
    for kept in range(min(len(items), MOST_ITEMS), 1, -1):
        text = join_first(items, kept, separator, noun=noun)
        if measure_phrase(text) <= MAX_LENGTH:
            return text
    return join_first(items, 1, separator, noun=noun)


def _list_unknown(report: Report) -> Iterator[Phrase]:
    """Yield the facts that the results leave unknown."""
    for finding in report.summary.findings:
        if isinstance(finding.message, MissingShards):
            indexes = ", ".join(map(format_count, finding.message.indexes[:MOST_NAMES]))
            more = " and others" if len(finding.message.indexes) > MOST_NAMES else ""
            yield (f"the scenarios of shard {indexes}{more}, which left no results",)
    if isinstance(report.comparison, Comparison):
        gone = report.comparison.filter_by_change("not_run")
        if gone:
            count = count_noun(len(gone), "scenario")
            names = [(Quoted(one.scenario_id, NAME_LIMIT),) for one in gone]
            yield (f"{count} of the baseline did not run: ", *join_first(names, MOST_NAMES))
    crashed = set(map(get_key, list_crashed(report)))
    if unjudged := [one for one in list_unjudged(report) if get_key(one) not in crashed]:
        judged = sum(1 for item in report.judged_scenarios() if not item.only_measures)
        scenarios = count_noun(judged, "scenario")
        yield (f"{format_count(len(unjudged))} of {scenarios} did not run to an end",)
    if isinstance(report.comparison, Comparison):
        apart = report.comparison.filter_by_change("not_comparable")
        if apart:
            first = apart[0].differences[:1]
            yield (
                f"{count_noun(len(apart), 'scenario')} not comparable",
                *(
                    part
                    for one in first
                    for part in (
                        f", as {one.condition} was ",
                        Quoted(one.before),
                        " and is ",
                        Quoted(one.after),
                    )
                ),
            )


def _list_not_compared(report: Report) -> Iterator[ChangeList]:
    """Yield why nothing was compared, and the figures of this run."""
    if not isinstance(report.comparison, NoBaseline):
        return
    yield ChangeList(
        "not_compared",
        (Quoted(report.comparison.reason, 160),),
    )
    if figures := tuple(_list_figures_now(report)):
        yield ChangeList("now", (" · ".join(figures),))


def _list_figures_now(report: Report) -> Iterator[str]:
    summary = report.summary
    rate, totals = summary.rated.pass_rate, summary.totals
    if rate is not None:
        yield f"pass rate {numbers.format_share(rate)}"
    if totals.cost_usd is not None and (ran := summary.tally.ran):
        yield f"cost per episode {numbers.format_money(totals.cost_usd / ran)}"
    if totals.p95_latency_ms is not None:
        yield f"p95 turn latency {numbers.format_latency(totals.p95_latency_ms)}"
