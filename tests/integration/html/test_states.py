"""What an episode changed, in the browser: below its conversation, as text."""

from __future__ import annotations

from ci_agent_eval.contract.state import compare_states
from tests.builders import failing
from tests.integration.html.browser import page_of

BEFORE = {"orders/1": {"status": "paid"}}
AFTER = {"orders/1": {"status": "<img src=x onerror=alert(1)></script>"}}


def test_the_changes_of_an_episode_are_in_its_panel(show):
    opened = show(page_of([failing(states=[compare_states("shop", "database", BEFORE, AFTER)])]))
    opened.page.locator("#episode-list .opener").click()
    lines = opened.page.locator(".said-pane .diff li")
    assert lines.nth(1).text_content() == "shop"
    assert lines.nth(2).text_content() == 'before: orders/1.status: "paid"'
    assert lines.nth(3).text_content().startswith('after: orders/1.status: "<img src=x onerror')
    assert lines.count() == 4
    assert opened.seen.nothing()
