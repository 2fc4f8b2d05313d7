"""The report in a browser: it loads, filters, opens episodes, and hostile texts stay texts."""

from __future__ import annotations

from importlib.resources import files

import pytest

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.render import numbers
from ci_agent_eval.results.baselines.runs import SampleCollector
from tests.builders import (
    baseline,
    episode,
    failed_assertion,
    failing,
    report,
    tool_call,
    turn,
)
from tests.integration.html.browser import page_of
from tests.render_reports import HOSTILE, LINKS, REPORTS, hostile

SCRIPTS = (
    "<script>document.title = 'taken'; alert(1)</script>",
    "</script><script>alert(2)</script>",
    "<!--<script>alert(3)",
    "<img src=x onerror=alert(4)>",
    "]]></script></style></title></textarea><svg onload=alert(5)>",
    "javascript:alert(6)",
    "data:text/html,<script>alert(7)</script>",
    "line\u2028and\u2029paragraph",
    "\u202eright to left\u2066isolate",
    "\x1b[31mred\x1b[0m \x00\x07",
    "{{ 7 * 7 }}{% raw %} ${alert(8)} `",
    '" autofocus onfocus=alert(9) x="',
    "&lt;b&gt; &amp;#60;",
)


def conversation(said: str = "hello", **fields: object) -> dict[str, object]:
    return {"turns": [{"role": "user", "content": said}, turn(**fields)]}


def small_suite():
    call = tool_call("issue_refund", arguments={"order_id": 1002}, result={"refund_id": "R-5"})
    broken = tool_call("track_parcel", result=None, error="HTTP 503")
    return [
        episode("refund", trajectory=conversation("a leaking machine", tool_calls=[call])),
        failing(
            "refund",
            iteration=2,
            assertions=[failed_assertion("asks a manager", reason="it paid at once", line=27)],
            trajectory=conversation("a broken mug"),
        ),
        episode(
            "parcel",
            outcome="error",
            reason="the carrier is down",
            trajectory=conversation("where is it", tool_calls=[broken]),
            budgets={"tool_calls": {"limit": 0}},
        ),
    ]


def test_it_loads_and_shows_verdict_scenarios_and_episodes(show):
    opened = show(page_of(small_suite(), links=LINKS))
    assert opened.seen.nothing(), opened.seen
    assert "Agent evals failed" in opened.page.locator("h1").inner_text()
    assert opened.page.locator("tr.scenario").count() == 2
    assert opened.rows() == ["refund#2", "parcel#1", "refund#1"]
    opened.expect_status("3 episodes")


@pytest.mark.parametrize("name", sorted(REPORTS))
def test_every_kind_of_report_loads(show, name):
    built = REPORTS[name]()
    opened = show(page_of([], built=built, links=LINKS, budgets=SuiteBudgets(total_tokens=9)))
    assert opened.seen.nothing(), opened.seen
    assert opened.page.locator("main").is_visible()


def test_a_conversation_of_the_base_opens_beside_one_of_this_run(show):
    before = [episode("refund", trajectory=conversation("a mug", content="Ask a manager."))]
    now = [failing("refund", trajectory=conversation("a mug", content=f"Paid. {HOSTILE}"))]
    samples = SampleCollector()
    for item in before:
        samples.keep(item.key, samples.put(item))
    built = report(*now, baseline=baseline(before))
    opened = show(page_of(now, built=built, samples=samples.list_samples()))
    opened.page.locator("tr.scenario .opener").click()
    pairs = opened.page.locator("tr.detail .turn-pair")
    assert pairs.count() == 2
    assert "Ask a manager." in pairs.nth(1).locator(".cell.before").inner_text()
    assert "Paid. @octocat" in pairs.nth(1).locator(".cell.now").inner_text()
    assert opened.seen.nothing(), opened.seen


NUMBERS = [*(2.5, 12.5, 13.5, 0.125, 0.375, 99.95, 999.5, 1e5, 4.35, 312_000, 119.96, 1234567.891)]
NUMBERS += [*(0, 1, 1e-9, 3.3e-8, 0.00415, 0.0095, 0.995, 0.1, 1.005, 1e14, 1e15, 2.5e20)]
WRITERS = {
    "figure": numbers.format_count,
    "money": numbers.format_money,
    "milliseconds": numbers.format_milliseconds,
    "seconds": numbers.format_seconds,
    "amount": numbers.format_amount,
}


def test_numbers_are_written_as_in_the_comment(show):
    page = show(page_of([])).page
    source = files("ci_agent_eval.render.html").joinpath("assets/numbers.js").read_text("utf-8")
    for name, write in WRITERS.items():
        shown = page.evaluate(
            f"(values) => {{ {source}; return values.map((v) => {name}(v)); }}", NUMBERS
        )
        assert dict(zip(NUMBERS, shown, strict=True)) == {n: write(n) for n in NUMBERS}, name
    for low, high in ((1000.4, 1000.3), (0.004, 0.00401), (5, 5)):
        shown = page.evaluate(f"() => {{ {source}; return distinct('money', {low}, {high}); }}")
        assert tuple(shown) == numbers.format_distinct(numbers.format_money, low, high, 2)


def test_text_and_outcome_filter_the_list(show):
    opened = show(page_of(small_suite()))
    opened.page.get_by_role("button", name="failed 1").click()
    opened.expect_status("1 of 3 episodes")
    opened.page.get_by_role("button", name="failed 1").click()
    opened.page.get_by_role("searchbox").fill("R-5 LEAKING")
    opened.page.get_by_text("1 of 3 episodes").wait_for()
    assert len(opened.rows()) == 1
    opened.page.get_by_role("searchbox").fill("nobody said this")
    opened.page.get_by_text("0 of 3 episodes").wait_for()
    assert opened.rows() == []
    assert opened.seen.nothing(), opened.seen


def test_the_list_can_be_ordered(show):
    suite = [
        episode("a", iteration=n, trajectory=conversation(cost_usd=cost, latency_ms=latency))
        for n, cost, latency in ((1, 0.02, 300), (2, 0.01, 500), (3, 0.03, 400))
    ]
    opened = show(page_of(suite))
    assert opened.rows() == ["a#1", "a#2", "a#3"]
    opened.page.get_by_label("Order").select_option("most costly first")
    assert opened.rows() == ["a#3", "a#1", "a#2"]
    opened.page.get_by_label("Order").select_option("slowest first")
    assert opened.rows() == ["a#2", "a#3", "a#1"]


def test_a_scenario_leads_to_its_episodes(show):
    opened = show(page_of(small_suite()))
    opened.page.locator("tr.scenario", has_text="parcel").get_by_role("button").click()
    opened.page.get_by_role("link", name="Show its 1 episode").click()
    opened.expect_status("1 of 3 episodes")
    opened.page.get_by_role("button", name="remove this filter").click()
    opened.expect_status("3 episodes")


def test_agents_and_evaluations_can_be_told_apart(show):
    suite = [
        episode("a", agent="desk-v1"),
        episode("a", iteration=2, agent="desk-v2"),
        episode("b", agent="desk-v2", mode="evaluation"),
    ]
    opened = show(page_of(suite))
    opened.page.locator("#filters").get_by_label("Agent").select_option("desk-v2")
    opened.expect_status("2 of 3 episodes")
    opened.page.locator("#filters").get_by_label("Kind").select_option("evaluation")
    opened.expect_status("1 of 3 episodes")


def test_the_mouse_opens_an_episode(show):
    opened = show(page_of(small_suite(), links=LINKS))
    row = opened.page.locator(".episode", has_text="asks a manager")
    row.get_by_role("button").first.click()
    assert row.get_by_text("a broken mug").is_visible()
    assert row.get_by_text("it paid at once").is_visible()
    place = row.get_by_role("link", name="tests/test_refunds.py:27")
    assert place.get_attribute("href").endswith("/tests/test_refunds.py#L27")
    row.get_by_role("button").first.click()
    assert not row.get_by_text("a broken mug").is_visible()


@pytest.mark.parametrize("text", [*SCRIPTS, "\n".join(SCRIPTS)], ids=range(len(SCRIPTS) + 1))
def test_hostile_texts_stay_texts(show, text):
    call = tool_call(text, arguments={text: text}, result=text, error=None)
    broken = tool_call(text, result=None, error=text)
    item = failing(
        text,
        nodeid=text,
        file=text,
        agent=text,
        model=text,
        reason=text,
        metadata={text: text},
        scores=[{"name": text, "value": 0.5, "reason": text}],
        assertions=[failed_assertion(text, reason=text, file=text)],
        budgets={"custom": {text: {"limit": 1, "used": 2, "unit": text}}},
        trajectory={
            "turns": [
                {"role": "user", "content": text},
                turn(
                    text,
                    tool_calls=[call, broken],
                    agent="1.1",
                    requested_model=text,
                    finish_reason=text,
                    settings={text: text},
                    error=text,
                    attachments=[{"media_type": text}],
                ),
            ],
            "agents": [{"id": "1.1", "name": text}],
        },
        traffic={"requests": 1, "unpriced_models": [text]},
    )
    built = hostile(text)
    opened = show(page_of([item]))
    page = opened.page
    title = page.title()
    assert "Agent evals failed" in title
    page.locator(".episode .opener").first.click()
    page.get_by_role("searchbox").fill("alert")
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    static = show(page_of([], built=built))
    for each in (opened, static):
        assert each.seen.nothing(), each.seen
        assert each.page.locator("script").count() == 1
        assert each.page.locator("img, iframe, object, svg[onload], [onerror]").count() == 0
        links = each.page.locator("a").evaluate_all("all => all.map((a) => a.getAttribute('href'))")
        assert all(link.startswith("#") for link in links)
    assert page.title() == title


def test_a_huge_text_is_cut_and_said_so(show):
    said = "x" * 1_000_000
    opened = show(page_of([episode("long", trajectory=conversation(said))]))
    opened.page.locator(".episode .opener").click()
    opened.page.get_by_role("button", name="Show all").click()
    assert "(992,000 more characters)" in opened.page.locator(".turn").first.inner_text()
    left_out = opened.page.locator("#left-out").inner_text()
    assert "1 text is shown only in its beginning" in left_out
    assert "results.json" in left_out


def test_nothing_foreign_can_run_or_be_loaded(show):
    opened = show(page_of(small_suite()))
    ran = opened.page.evaluate(
        """async () => {
            const image = document.createElement("img");
            const refused = new Promise((done) => { image.onerror = () => done(true); });
            image.src = "http://127.0.0.1:9/x.png";
            document.body.append(image);
            let markup = false;
            try { document.body.innerHTML = "<p>"; markup = true; } catch {}
            return { image: await refused, markup };
        }"""
    )
    assert ran == {"image": True, "markup": False}
    assert any("Content Security Policy" in line for line in opened.seen.console)


def test_print_shows_what_the_list_holds(show):
    suite = [episode("a", iteration=n) for n in range(1, 121)]
    opened = show(page_of(suite))
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.locator(".episode").count() == 120
    assert not opened.page.locator("#filters").is_visible()
