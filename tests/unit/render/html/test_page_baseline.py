"""The HTML report beside a baseline: changes, arguments and conversations of both sides."""

from __future__ import annotations

import json
import re
from html import unescape

from ci_agent_eval.render.html.page_limits import PageLimits
from ci_agent_eval.results.samples import SampleCollector
from tests.builders import baseline, episode, failing, report, tool_call, turn
from tests.render_reports import compared, regressed
from tests.unit.render.html.rendered_page import data, left_out, page


def test_base_and_head_stand_side_by_side():
    text = page(built=compared())
    section = re.search(r'<section id="baseline".*?</section>', text, re.DOTALL)[0]
    pairs = re.findall(r'<details class="pair"( open)?>(.*?)</details>', section, re.DOTALL)
    names = [re.search("<strong><bdi>(.*?)</bdi>", pair)[1] for _, pair in pairs]
    assert names[0] == "refund_over_limit"
    assert {name for (opened, _), name in zip(pairs, names, strict=True) if opened} == {
        "refund_over_limit", "small_talk", "loyalty_points", "escalation",
    }  # fmt: skip
    ways = re.findall(r"<ol>(.*?)</ol>", pairs[0][1], re.DOTALL)
    assert [re.findall(r"<bdi>(\w+)", way) for way in ways] == [
        ["lookup_order", "ask_manager", "issue_refund"], ["lookup_order", "issue_refund"],
    ]  # fmt: skip
    assert [re.search(r'class="parted">.*?<bdi>(\w+)', way)[1] for way in ways] == [
        "ask_manager", "issue_refund",
    ]  # fmt: skip
    assert "half of the level of 5 % for 1 scenario with failures enough" in unescape(section)


def scenario_data(text):
    return json.loads(re.search(r'id="scenario-data">(.*?)</script>', text, re.DOTALL)[1])


def test_what_regressed_is_trouble_although_it_reaches_its_rate():
    rows = scenario_data(page(built=regressed()))
    assert [row["id"] for row in rows[:4]] == ["greeting", "search", "small", "tone"]
    assert [row.get("gated", False) for row in rows[:4]] == [False, True, True, True]
    (against,) = rows[3]["against"]
    assert (against["kind"], against["gates"]) == ("regression", True)
    assert against["what"].startswith("regression, adjusted p")
    assert against["what"].endswith("; passes 2 / 10 now, 10 / 10 before")
    assert not any("gated" in row for row in rows if row["id"] == "refund")


def chips(text, name):
    section = re.search(r'<section id="baseline".*?</section>', text, re.DOTALL)[0]
    summaries = re.findall(r"<summary>(.*?)</summary>", section, re.DOTALL)
    (mine,) = [summary for summary in summaries if f"<bdi>{name}</bdi>" in summary]
    return re.findall(r'class="chip (\w+)">([^<]*)<', mine)


def test_the_chip_of_a_regression_that_gates_is_red_and_none_says_unchanged():
    assert chips(page(built=regressed()), "tone") == [("failed", "regression")]
    assert chips(page(built=regressed()), "small") == [("failed", "downgraded")]
    assert chips(page(built=regressed()), "refund") == [("warning", "higher cost or latency")]
    assert chips(page(built=regressed()), "exchange") == [("plain", "still passing")]
    assert chips(page(built=regressed()), "search") == [
        ("plain", "still passing"),
        ("warning", "newly over budget"),
    ]
    assert chips(page(built=compared()), "refund_over_limit") == [
        ("failed", "newly failing"),
        ("failed", "regression"),
    ]


def test_an_argument_that_differs_stands_on_both_sides_of_the_page():
    def refund(build, amount):
        calls = [tool_call("lookup"), tool_call("refund", arguments={"amount": amount})]
        return build(trajectory={"turns": [turn(tool_calls=calls)]})

    built = report(refund(failing, 400), baseline=baseline([refund(episode, 40)]))
    text = unescape(page(built=built))
    found = "First divergence at tool call 2 of turn 1, argument amount, in the failing episodes."
    assert found in text
    assert '<h3 class="label">Before: 1 of 1 passing episode</h3>' in text
    assert re.findall(r"<bdi>(refund\(.*?\))</bdi>", text) == [
        "refund(amount=40)",
        "refund(amount=400)",
    ]


def sampled(*episodes):
    """What a baseline of these episodes lends to the page."""
    samples = SampleCollector()
    for item in episodes:
        samples.keep(item.key, samples.put(item))
    return samples.list_samples(None)


def went(said, *names, **fields):
    turns = [{"role": "user", "content": "hello"}, turn(said, tool_calls=[*map(tool_call, names)])]
    return {"trajectory": {"turns": turns}, **fields}


def beside(now, before, **options):
    built = report(*now, baseline=baseline(before))
    return data(page(*now, built=built, samples=sampled(*before), **options), "talk")


def test_a_conversation_of_the_base_stands_beside_one_of_this_run():
    before = [episode("refund", iteration=n, **went("Wait.", "ask")) for n in (1, 2)]
    now = [
        episode("other"),
        episode("refund", iteration=1, **went("Wait.", "ask")),
        failing("refund", iteration=2, **went("Paid.", "pay")),
    ]
    (pair,) = beside(now, before).values()
    assert (pair["iteration"], pair["outcome"], pair["now"]) == (1, "passed", 3)
    said = pair["turns"][1]
    assert (said["text"], said["calls"][0]["name"]) == ("Wait.", "ask")
    assert '"order_id": 1001' in said["calls"][0]["arguments"]


def test_of_what_was_fixed_the_failing_side_is_that_of_the_base():
    before = [
        episode("refund", iteration=1, **went("Wait.", "ask")),
        *(failing("refund", iteration=n, **went("Paid.", "pay")) for n in (2, 3)),
    ]
    now = [episode("refund", iteration=n, **went("Wait.", "ask")) for n in (1, 2, 3)]
    (pair,) = beside(now, before).values()
    assert (pair["iteration"], pair["outcome"], pair["now"]) == (2, "failed", 1)


def test_a_conversation_that_has_no_room_is_said_to_be_left_out():
    before, now = [episode("a"), episode("b")], [failing("a"), failing("b")]
    pairs = beside(now, before, caps=PageLimits(baseline=10))
    assert [("turns" in pair) for pair in pairs.values()] == [True, False]
    text = page(*now, built=report(*now, baseline=baseline(before)), samples=sampled(*before),
                caps=PageLimits(baseline=10))  # fmt: skip
    assert "1 episode is listed without the conversation" in left_out(text)
