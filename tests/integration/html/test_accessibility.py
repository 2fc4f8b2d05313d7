"""Accessibility of the report, conversations side by side, and the data of episodes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from axe_playwright_python.sync_playwright import Axe

from ci_agent_eval.contract.state import compare_states
from ci_agent_eval.contract.trajectory import ToolCall
from tests.builders import calling, episode, failing, tool_call, turn
from tests.comment_reports import build_comment_report
from tests.integration.html.browser import page_of
from tests.integration.html.test_report import conversation, small_suite
from tests.render_reports import LINKS, agreed, everything_wrong, regressed

# The report for everyone: rules of axe, keyboard alone, narrow screens, thousands of episodes.


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


# Any two episodes side by side: like turns face each other, and differences are marked.


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


# The words of opened episodes: traffic, agents, steered calls, states, retries.


ANSWERED = turn(
    source="live",
    latency_ms=1500,
    first_byte_ms=300,
    tokens={"input": 90, "output": 60, "cached": 50, "reasoning": 40},
    requested_model="gpt-5",
    response_model="gpt-5-2026",
    finish_reason="stop",
    settings={"top_p": 0.5, "temperature": 0},
    typed_output={"stars": 4},
)
BROKEN_OFF = turn(
    attachments=[{"media_type": "image/png", "sha256": "ab" * 32, "size_bytes": 1200}, {}],
    error="the answer ended early",
    tool_calls=[{"name": "lookup", "result_unseen": True}, tool_call()],
)
NESTED = [
    {"id": "1"},
    {"id": "1.1", "name": "ask_expert", "parent": "1", "relation": "nested", "call_id": "c1"},
    {"id": "1.2", "name": "\x1b[31m" + "x" * 999, "parent": "1"},
]
TRAFFIC = {
    "requests": 4,
    "refused": 1,
    "failed": 1,
    "unattributed": 2,
    "is_shared": True,
    "unpriced_models": ["my-model"],
    "vendor_priced_models": ["gpt-5"],
}
TURNS_OF_AGENTS = [turn(agent="1"), turn(agent="1.1"), turn(agent="1.2"), turn(agent="1")]
OF_VENDOR = {"requests": 0, "vendor_priced_models": ["gpt-5"]}
SHOP = compare_states("shop", "database", {"a": {"x": 1}}, {"a": {"x": "</script>"}})


def run(kind, duration=None, **fields):
    fields |= {} if duration is None else {"duration_ms": duration}
    return ToolCall(name="bash", result="Run one test.", test_run=kind, **fields).model_dump()


HELD = run("full", 0, steered_by="pytest-full-suite")
EPISODES = [
    episode("answered", trajectory={"turns": [ANSWERED]}, traffic=TRAFFIC),
    episode("broken off", trajectory={"turns": [BROKEN_OFF]}, traffic={"requests": 0}),
    episode(
        "agents", trajectory={"turns": TURNS_OF_AGENTS, "agents": NESTED}, traffic=OF_VENDOR
    ),
    episode("hostile", trajectory={"turns": [turn(requested_model="<b>\u202e")]}),
    calling(HELD, run("targeted", 1200), run("targeted", 800), run("full", 312_000)).model_copy(
        update={"scenario_id": "runs"}
    ),
    calling(HELD, run("targeted")).model_copy(update={"scenario_id": "a run without a time"}),
    calling(HELD, run("targeted", 1200), run("targeted")).model_copy(
        update={"scenario_id": "a run with a time"}
    ),
    episode("states", states=[SHOP]),
    failing("retried"),
    episode("retried", attempt=2),
    episode(
        "tone",
        mode="evaluation",
        assertions=[{"name": "is kind", "passed": True, "score": 0.8}],
    ),
    failing("fails"),
    failing("only informs", gate="advisory"),
]  # fmt: skip


def test_every_episode_reads_as_the_golden_one(show, golden):
    page = show(page_of(EPISODES)).page
    words = []
    for number in range(1, len(EPISODES) + 1):
        row = page.locator(".episode", has=page.locator(f"#episode-{number}"))
        row.locator(".opener").click()
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        words.append(" ".join(row.inner_text().split()))
    golden("html/episodes.txt", "\n\n".join(words) + "\n")
    scenarios = page.locator("#scenarios").inner_text()
    assert "Evaluations: 1 of 1 conversation passed" in scenarios
