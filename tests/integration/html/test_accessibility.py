"""The report for everyone: rules of axe, keyboard alone, narrow screens, thousands of episodes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.builders import episode, failing
from tests.comment_reports import build_comment_report
from tests.integration.html.browser import page_of
from tests.integration.html.test_report import conversation, small_suite
from tests.render_reports import LINKS, agreed, everything_wrong, regressed

WIDTHS = (390, 1280)


def open_everything(opened):
    for opener in opened.page.locator(".opener").all():
        if opener.get_attribute("aria-expanded") == "false":
            opener.click()
    opened.page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")


def list_violations(opened):
    """Return the broken rules of axe with the first element that breaks each."""
    found = Axe().run(opened.page).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing(show, width, scheme):
    size = {"width": width, "height": 900}
    pages = [
        (page_of(small_suite(), links=LINKS), "#compare=1,3"),
        (page_of([], built=build_comment_report("10-three-regressions"), links=LINKS), ""),
        *((page_of([], built=built(), links=LINKS), "") for built in (agreed, everything_wrong)),
    ]
    for page, fragment in pages:
        opened = show(page, fragment=fragment, viewport=size, color_scheme=scheme)
        open_everything(opened)
        assert list_violations(opened) == []
        opened.page.keyboard.press("?")
        assert list_violations(opened) == []


@pytest.mark.parametrize("built", [agreed, everything_wrong, regressed])
def test_nothing_scrolls_sideways_on_a_phone(show, built):
    opened = show(page_of(small_suite(), built=built()), viewport={"width": 390, "height": 800})
    open_everything(opened)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    wider = opened.page.locator(".scroll").evaluate_all(
        "all => all.filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.outerHTML)"
    )
    assert wider == []


def test_keys_reach_search_episodes_and_their_own_list(show):
    page = show(page_of(small_suite())).page
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.keyboard.type("n")
    assert page.get_by_role("searchbox").input_value() == "n"
    page.keyboard.press("Escape")
    for key, number in (("n", 3), ("n", 1), ("p", 3)):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == f"episode-{number}"
    page.keyboard.press("?")
    assert page.get_by_role("dialog").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog").is_visible()


def test_keys_can_be_turned_off(show):
    opened = show(page_of(small_suite()), fragment="#keys=off")
    opened.page.keyboard.press("?")
    assert opened.page.get_by_role("dialog").count() == 0
    opened.page.get_by_role("button", name="Keyboard shortcuts").click()
    opened.page.get_by_label("Use these keys").check()
    opened.page.get_by_role("button", name="Close").click()
    opened.page.keyboard.press("?")
    assert opened.page.get_by_role("dialog").is_visible()


def test_tab_reaches_every_control_and_leaves_the_page(show):
    opened = show(page_of(small_suite()))
    page = opened.page
    wanted = page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, select, summary")]
            .filter((one) => one.checkVisibility({ visibilityProperty: true }) && one.offsetParent)
            .map((one, at) => { one.dataset.at = at; return String(at); })"""
    )
    reached = set()
    for _ in range(len(wanted) + 5):
        page.keyboard.press("Tab")
        at = page.evaluate("document.activeElement.dataset.at ?? ''")
        if at:
            reached.add(at)
            style = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert style != "none", at
    assert sorted(wanted) == sorted(reached)


def make_suite(number):
    """Return so many episodes, ten of a scenario, every fiftieth failed."""
    return [
        (failing if n % 50 == 0 else episode)(
            f"scenario_{n // 10:04}", nodeid=f"t.py::test[{n}]", iteration=n
        )
        for n in range(1, number + 1)
    ]


def test_twenty_thousand_episodes_keep_the_page_small(show):
    opened = show(page_of(make_suite(20_000)))
    page = opened.page
    opened.expect_status("20,000 episodes")
    assert count_elements(page) < 5_000
    page.get_by_role("button", name="failed 400").click()
    opened.expect_status("400 of 20,000 episodes")
    page.get_by_role("button", name="failed 400").click()
    page.get_by_role("searchbox").fill("test[4321]")
    page.get_by_text("1 of 20,000 episodes").wait_for()
    assert opened.rows() == ["scenario_0432#4321"]
    page.get_by_role("searchbox").fill("")
    page.get_by_text("20,000 episodes", exact=True).wait_for()
    page.get_by_role("button", name="Show 50 more of 19,950 episodes").click()
    assert page.locator(".episode").count() == 100
    assert page.locator(".panel > *").count() == 0
    page.evaluate("location.hash = '#episode=15000'")
    page.locator('#episode-15000[aria-expanded="true"]').wait_for()
    assert page.locator(".episode").count() == 50
    assert count_elements(page) < 5_000


def count_elements(page):
    return page.evaluate("document.querySelectorAll('*').length")


def test_every_control_has_a_name_and_every_picture_words(show):
    opened = show(page_of([*small_suite(), episode("c", trajectory=conversation(latency_ms=5))]))
    opened.page.locator(".episode .opener").first.click()
    unnamed = opened.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, a, summary")]
            .filter((one) => !one.hidden && !(one.textContent.trim() || one.labels?.[0]?.textContent.trim()))
            .map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    headings = opened.page.evaluate(
        "[...document.querySelectorAll('h1, h2, h3, h4')].map((h) => +h.tagName[1])"
    )
    assert headings.count(1) == 1
    assert all(next_ - last <= 1 for last, next_ in pairwise(headings))
    assert (
        opened.page.locator("svg:not([aria-hidden]):not([role=img][aria-labelledby])").count() == 0
    )
    for landmark in ("banner", "navigation", "main", "search", "contentinfo"):
        assert opened.page.get_by_role(landmark).count() == 1, landmark
    assert opened.page.evaluate("document.documentElement.lang") == "en"
