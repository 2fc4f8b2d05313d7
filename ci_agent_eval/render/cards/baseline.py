"""Cards of what comparing found, as far as no failure shows it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ci_agent_eval.analysis.failure_causes import CauseRole
from ci_agent_eval.gate.failure_groups import group_failures
from ci_agent_eval.gate.model import ReasonKind
from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.cards.model import (
    SENTENCE_LIMIT,
    CardFacts,
    CauseCard,
    ListBlock,
)
from ci_agent_eval.render.numbers import ABSENT, count_noun
from ci_agent_eval.render.phrases import (
    Phrase,
    Quoted,
    Strong,
    get_key,
    join_phrases,
    quote_name,
    quote_place,
)

_OF_SCENARIOS: frozenset[ReasonKind] = frozenset({"regression", "undecided", "unconfirmed"})
_IN_A_LIST: frozenset[ReasonKind] = frozenset({"scenario_increase", "newly_over", "baseline"})
"""Kinds of warnings that the lists of changes tell."""


def build_baseline_cards(facts: CardFacts) -> Iterator[CauseCard]:
    """Yield a card for each kind of finding of the comparison that no other card shows."""
    shown = {
        get_key(one.scenario) for group in group_failures(facts.report) for one in group.scenarios
    }
    others = [
        finding
        for finding in facts.baseline_findings
        if not (finding.kind in _OF_SCENARIOS and finding.key in shown)
        and not (finding.kind == "suite_drop" and shown)
        and (finding.gates or finding.kind not in _IN_A_LIST)
    ]
    for (gates, kind), group in groupby(others, key=lambda one: (one.gates, one.kind)):
        findings = list(group)
        role: CauseRole = "gates" if gates else "warns"
        lines = [_write_finding(one, facts) for one in findings]
        if len(findings) == 1 or findings[0].name is None:
            yield from (CauseCard(role, line) for line in lines)
        else:
            head = Strong(count_noun(len(findings), "scenario"))
            name = _NAMES.get(kind, kind.replace("_", " "))
            keys = frozenset(one.key for one in findings if one.key is not None)
            yield CauseCard(role, (head, f" {name}"), [ListBlock(lines)], keys)


_NAMES: dict[ReasonKind, str] = {
    "regression": "regressed",
    "fewer_iterations": "with too few iterations to show a drop",
    "flakier": "need more retries than before",
    "not_comparable": "are not comparable",
    "not_judged": "are not judged any more",
    "undecided": "likely pass less often",
    "vanished_cases": "lost cases",
    "downgraded": "require less than before",
    "weaker_demands": "have weaker tests than before",
    "lower_scores": "have checks that pass with lower scores",
    "increase": "cost more or are slower than allowed",
    "possible_increase": "may cost more or be slower than allowed",
    "unconfirmed": "with a drop that is not confirmed today",
}


def _write_finding(finding: BaselineFinding, facts: CardFacts) -> Phrase:
    """Return name, figures and sentence of a finding."""
    sides = " → ".join(side for side in (finding.before, finding.now) if side != ABSENT)
    name: Phrase = ("whole suite",) if finding.name is None else quote_name(finding.name)
    head = (*name, f" {sides}") if sides else name
    quoted: Phrase = (": ", Quoted(finding.quoted, SENTENCE_LIMIT)) if finding.quoted else ()
    links: Phrase = ()
    if finding.name is not None and finding.key in {row.key for row in facts.scenarios}:
        links = facts.quote_links(finding.name.scenario_id, finding.place)
    elif place := quote_place(finding.place):
        links = (place,)
    return join_phrases([head, (finding.text, *quoted), links], " · ")
