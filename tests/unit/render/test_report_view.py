"""The view model of the report, that every format renders."""

from __future__ import annotations

from ci_agent_eval.render.report_view import build_report_view
from tests.builders import agreement, baseline, episode, failing, report
from tests.tables import each_row


@each_row("expired", [False, True])
def test_a_card_names_only_an_acknowledgement_that_has_ended(expired):
    built = report(
        *(failing("tone", iteration=n) for n in range(1, 21)),
        acknowledged=(agreement("tone", expired=expired),),
        baseline=baseline([episode("tone", iteration=n) for n in range(1, 21)]),
    )
    (card,) = build_report_view(built).cards
    assert ("its acknowledgement ended on 2026-01-31" in str(card.body)) is expired
