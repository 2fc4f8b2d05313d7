"""Agents and models against scenarios, where a run has several of them."""

from __future__ import annotations

from tests.builders import episode, failing
from tests.integration.html.browser import page_of


def suite():
    return [
        episode("refund", agent="desk-v1", model="gpt-5"),
        episode("refund", agent="desk-v1", model="gpt-5", iteration=2),
        failing("refund", agent="desk-v2", model="gpt-5"),
        episode("refund", agent="desk-v2", model="gpt-5", iteration=2),
        failing("parcel", agent="desk-v2", model="sonnet"),
    ]


def list_cells(opened, kind):
    table = opened.page.locator(f"table[aria-labelledby=matrix-{kind}]")
    return [tuple(row.inner_text().split("\t")) for row in table.locator("tr").all()]


def test_each_pair_has_its_passes_and_leads_to_its_episodes(show):
    opened = show(page_of(suite()))
    assert list_cells(opened, "agent") == [
        ("scenario", "desk-v1", "desk-v2"),
        ("parcel", "–", "0 / 1 failed"),
        ("refund", "2 / 2 passed", "1 / 2 mixed"),
    ]
    assert list_cells(opened, "model") == [
        ("scenario", "gpt-5", "sonnet"),
        ("parcel", "–", "0 / 1 failed"),
        ("refund", "3 / 4 mixed", "–"),
    ]
    opened.page.get_by_role("link", name="1 / 2 mixed").click()
    assert opened.page.evaluate("location.hash") == "#scenario=refund&agent=desk-v2"
    opened.expect_status("2 of 5 episodes")
    assert opened.seen.nothing(), opened.seen
