"""All cards of a report, the gating ones first.

`docs/decisions/0055-comment-by-cause.md` explains the choices.
"""

from __future__ import annotations

from ci_agent_eval.analysis.failure_causes import (
    CauseRole,
)
from ci_agent_eval.render.cards.baseline import build_baseline_cards
from ci_agent_eval.render.cards.budgets import build_budget_cards
from ci_agent_eval.render.cards.failures import (
    build_error_cards,
    build_failure_cards,
    build_test_cards,
)
from ci_agent_eval.render.cards.model import (
    CardFacts,
    CauseCard,
)
from ci_agent_eval.render.cards.others import (
    build_finding_cards,
    build_manifest_cards,
    build_other_cards,
    build_skipped_cards,
)


def build_cause_cards(facts: CardFacts) -> tuple[CauseCard, ...]:
    """Return the cards: those that gate first, then parts of a drop, then warnings."""
    cards = [
        *build_finding_cards(facts.findings),
        *build_error_cards(facts),
        *build_failure_cards(facts),
        *build_test_cards(facts),
        *build_budget_cards(facts),
        *build_baseline_cards(facts),
        *build_manifest_cards(facts),
        *build_skipped_cards(facts),
        *build_other_cards(facts.report),
    ]
    order: dict[CauseRole, int] = {"gates": 0, "contributes": 1, "warns": 2}
    return tuple(sorted(cards, key=lambda card: order[card.role]))
