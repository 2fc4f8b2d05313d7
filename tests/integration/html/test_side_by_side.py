"""Any two episodes side by side: like turns face each other, and differences are marked."""

from __future__ import annotations

from tests.builders import episode, failing, tool_call, turn
from tests.integration.html.browser import page_of

ASKED = {"role": "user", "content": "I want my money back."}


def suite():
    lookup = tool_call("lookup_order")
    asking = [turn("Which order?"), {"role": "user", "content": "1002"}]
    paid = turn("The $900 are on their way.", tool_calls=[lookup, tool_call("issue_refund")])
    held = turn("The $900 wait for a manager.", tool_calls=[lookup, tool_call("ask_manager")])
    return [
        failing("refund", trajectory={"turns": [ASKED, *asking, paid]}),
        episode("refund", iteration=2, trajectory={"turns": [ASKED, held]}),
        episode("parcel", trajectory=None, agent="desk-v2"),
    ]


def list_rows(opened):
    """Return the texts of both sides of each pair of turns."""
    rows = opened.page.locator("#compare .turn-pair").all()
    return [tuple(row.locator(".cell").all_inner_texts()) for row in rows]


def test_two_chosen_rows_are_shown_side_by_side(show):
    opened = show(page_of(suite()))
    page = opened.page
    page.get_by_role("button", name="compare refund #1").click()
    assert "refund #1 is chosen" in page.locator("#compare-status").inner_text()
    assert not page.locator("#compare").is_visible()
    page.get_by_role("button", name="compare refund #2").click()
    assert page.evaluate("location.hash") == "#compare=2,3"
    assert page.evaluate("document.activeElement.id") == "compare-title"
    rows = list_rows(opened)
    assert len(rows) == 4
    assert all("I want my money back." in side for side in rows[0])
    assert ["no such turn" in right for _, right in rows] == [False, True, True, False]
    assert opened.seen.nothing(), opened.seen


def test_words_and_calls_that_differ_are_marked(show):
    opened = show(page_of(suite()), fragment="#compare=2,3")
    last = opened.page.locator("#compare .turn-pair").last
    assert last.locator(".before mark").all_inner_texts() == ["are on their way."]
    assert last.locator(".now mark").all_inner_texts() == ["wait for a manager."]
    differing = last.locator(".call", has_text="differs").locator(".tool").all_inner_texts()
    assert differing == ["issue_refund", "ask_manager"]
    assert opened.page.locator("#compare .turn-pair").first.locator("mark").count() == 0


def test_sides_swap_and_close_by_the_address(show):
    opened = show(page_of(suite()), fragment="#compare=2,3")
    page = opened.page
    page.get_by_role("link", name="Swap sides").click()
    assert page.locator("#compare .compared h3").all_inner_texts()[0].endswith("refund #2")
    page.go_back()
    assert page.locator("#compare .compared h3").all_inner_texts()[0].endswith("refund #1")
    page.get_by_role("link", name="Close").click()
    assert not page.locator("#compare").is_visible()


def test_an_episode_without_a_conversation_is_compared_all_the_same(show):
    opened = show(page_of(suite()), fragment="#compare=1,2")
    assert "No conversation was recorded." in opened.page.locator("#compare").inner_text()
    gone = show(page_of(suite()), fragment="#compare=1,77")
    assert not gone.page.locator("#compare").is_visible()
    assert gone.seen.nothing(), gone.seen
