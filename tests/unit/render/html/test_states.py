"""The changes of watched states in the panel of an episode, and in the card of its failure."""

from __future__ import annotations

from ci_agent_eval.contract.state import compare_states
from tests.builders import failing, report
from tests.comment_reports import add_pairs
from tests.unit.render.html.rendered_page import page

SHOP = compare_states("shop", "database", {"a": {"x": 1}}, {"a": {"x": "</script>"}})


def test_the_card_of_a_failure_shows_them_escaped():
    head = [failing(states=[SHOP])]
    shown = page(*head, built=add_pairs(report(*head), head, None))
    assert (
        '<li class="now"><span class="unseen">now: </span><bdi>a.x: &#34;&lt;/script&gt;' in shown
    )
