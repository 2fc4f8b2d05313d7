"""The first screen: causes with what the agent did before and now, and how keys move in them."""

from __future__ import annotations

from tests.comment_reports import build_comment_report
from tests.integration.html.browser import page_of


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
