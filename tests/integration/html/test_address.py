"""The report in a browser: address and causes."""

from __future__ import annotations

import pytest

from ci_agent_eval.render.links import Links
from tests.builders import episode, failing, turn
from tests.comment_reports import build_comment_report
from tests.integration.html.browser import page_of

# The view in the address: links, copied addresses, and the browser's back and forward.


ODD = "refund & more/50% #1 + é\n=x"


def suite():
    return [
        *(episode("parcel", iteration=n, model=f"model-{n % 2}") for n in range(1, 4)),
        failing("refund", trajectory={"turns": [turn("It was paid.")]}),
        episode("refund", iteration=2, trajectory={"turns": [turn("No.")]}),
        failing(ODD, nodeid="t.py::odd", trajectory={"turns": [turn("It was paid.")]}),
        episode(ODD, iteration=2, nodeid="t.py::odd"),
    ]


def fragment(opened):
    return opened.page.evaluate("location.hash")


def open_titles(opened):
    """Return the titles of the episodes that are open."""
    return opened.page.locator('.opener[aria-expanded="true"] .title').all_text_contents()


@pytest.mark.parametrize("name", ["refund", ODD])
def test_the_link_of_a_comment_opens_the_scenario_and_its_failed_conversation(show, name):
    address = Links(report_url="https://github.com/o/r/1").conversation(name)
    opened = show(page_of(suite()), fragment="#" + address.partition("#")[2])
    opened.expect_status("2 of 7 episodes")
    assert f"{name}#1".replace("\n", "⏎") in open_titles(opened)
    assert opened.page.locator("#episode-list").get_by_text("It was paid.").is_visible()
    assert opened.page.locator("tr.scenario").count() == 1
    assert opened.page.evaluate("document.activeElement.id") == "episodes-title"
    assert opened.seen.nothing(), opened.seen


def test_a_scenario_that_is_not_there_is_said_so(show):
    opened = show(page_of(suite()), fragment="#scenario=gone%zz&episode=99&order=none&x=1")
    opened.expect_status("0 of 7 episodes")
    assert "not in this report" in opened.page.locator("#scenario-status").inner_text()
    opened.page.get_by_role("link", name="show all").click()
    opened.expect_status("7 episodes")
    assert opened.seen.nothing(), opened.seen


def test_a_copied_address_shows_the_same_view(show):
    page = page_of(suite())
    opened = show(page)
    opened.page.get_by_role("button", name="passed 5").click()
    opened.page.locator("#filters").get_by_label("Model").select_option("model-1")
    opened.page.get_by_role("searchbox").fill("parcel")
    opened.page.get_by_label("Order").select_option("by scenario")
    opened.page.wait_for_url("**&q=parcel*")
    opened.page.locator(".episode .opener").nth(1).click()
    address, listed = fragment(opened), opened.rows()
    assert listed == ["parcel#1", "parcel#3"]
    copied = show(page, fragment=address)
    assert copied.rows() == listed
    assert open_titles(copied)[-1] == "parcel#3"
    assert copied.page.locator("#filters").get_by_label("Model").input_value() == "model-1"
    assert copied.page.get_by_role("searchbox").input_value() == "parcel"
    assert (
        copied.page.get_by_role("button", name="passed 5").get_attribute("aria-pressed") == "true"
    )


def test_back_and_forward_move_between_views(show):
    opened = show(page_of(suite()))
    page = opened.page
    page.get_by_role("button", name="failed 2").click()
    page.locator(".episode .opener").nth(1).click()
    assert open_titles(opened) == opened.rows()[1:2]
    page.go_back()
    assert open_titles(opened) == []
    opened.expect_status("2 of 7 episodes")
    page.go_back()
    opened.expect_status("7 episodes")
    assert fragment(opened) == ""
    page.go_forward()
    page.go_forward()
    opened.expect_status("2 of 7 episodes")
    assert len(open_titles(opened)) == 1


# The first screen: causes with what the agent did before and now, and how keys move in them.


def show_report(show, name="10-three-regressions", **options):
    return show(page_of([], built=build_comment_report(name)), **options)


def shown_panels(opened):
    return opened.page.locator(".cause-panel:visible").evaluate_all("all => all.map((p) => p.id)")


def test_the_address_holds_the_cause(show):
    opened = show_report(show)
    opened.page.locator(".cause").nth(2).click()
    assert opened.page.evaluate("location.hash") == "#cause=3"
    assert shown_panels(opened) == ["cause-3"]
    opened.page.go_back()
    assert shown_panels(opened) == ["cause-1"]
    assert shown_panels(show_report(show, fragment="#cause=2")) == ["cause-2"]
    assert shown_panels(show_report(show, fragment="#cause=99")) == ["cause-1"]


def test_keys_move_between_causes(show):
    opened = show_report(show)
    page = opened.page
    for key, panel in (("j", "cause-1"), ("j", "cause-2"), ("j", "cause-3"), ("k", "cause-2")):
        page.keyboard.press(key)
        assert shown_panels(opened) == [panel]
    assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "true"


def test_without_scripts_every_cause_is_shown(show):
    opened = show_report(show, java_script_enabled=False)
    panels = opened.page.locator(".cause-panel")
    assert panels.count() == 3
    assert all(panel.is_visible() for panel in panels.all())
