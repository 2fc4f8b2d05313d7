"""The HTML report beside a baseline: changes and conversations of both sides."""

from __future__ import annotations

import json
import re

from ci_agent_eval.render.html.page_limits import PageLimits
from ci_agent_eval.results.baselines.runs import SampleCollector
from tests.builders import baseline, episode, failing, report, tool_call, turn
from tests.render_reports import compared, regressed
from tests.unit.render.html.rendered_page import data, left_out, page

BUILT = {"compared": compared, "regressed": regressed}


def test_changes_and_conversations_are_the_golden_ones(golden):
    shown = {}
    for name, build in BUILT.items():
        text = page(built=build())
        section = re.search(r'<section id="baseline".*?</section>', text, re.DOTALL)[0]
        rows = "\n".join(json.dumps(row) for row in data(text, "scenario"))
        shown[name] = f"{section}\n{rows}"
    golden("html/baseline.html", shown)


def sampled(*episodes):
    """What a baseline of these episodes lends to the page."""
    samples = SampleCollector()
    for item in episodes:
        samples.keep(item.key, samples.put(item))
    return samples.list_samples()


def went(said, *names, **fields):
    turns = [{"role": "user", "content": "hello"}, turn(said, tool_calls=[*map(tool_call, names)])]
    return {"trajectory": {"turns": turns}, **fields}


def beside(now, before, **options):
    built = report(*now, baseline=baseline(before))
    rows = data(page(*now, built=built, samples=sampled(*before), **options), "scenario")
    return [row["compared"]["talk"] for row in rows if "talk" in row.get("compared", {})]


def test_a_conversation_of_the_base_stands_beside_one_of_this_run():
    before = [episode("refund", iteration=n, **went("Wait.", "ask")) for n in (1, 2)]
    now = [
        episode("other"),
        episode("refund", iteration=1, **went("Wait.", "ask")),
        failing("refund", iteration=2, **went("Paid.", "pay")),
    ]
    (pair,) = beside(now, before)
    assert (pair["iteration"], pair["outcome"], pair["now"]) == (1, "passed", 3)
    said = pair["turns"][1]
    assert (said["content"], said["tool_calls"][0]["name"]) == ("Wait.", "ask")
    assert '"order_id": 1001' in said["tool_calls"][0]["arguments"]


def test_of_what_was_fixed_the_failing_side_is_that_of_the_base():
    before = [
        episode("refund", iteration=1, **went("Wait.", "ask")),
        *(failing("refund", iteration=n, **went("Paid.", "pay")) for n in (2, 3)),
    ]
    now = [episode("refund", iteration=n, **went("Wait.", "ask")) for n in (1, 2, 3)]
    (pair,) = beside(now, before)
    assert (pair["iteration"], pair["outcome"], pair["now"]) == (2, "failed", 1)


def test_a_conversation_that_has_no_room_is_said_to_be_left_out():
    before, now = [episode("a"), episode("b")], [failing("a"), failing("b")]
    pairs = beside(now, before, caps=PageLimits(baseline=10))
    assert [("turns" in pair) for pair in pairs] == [True, False]
    text = page(*now, built=report(*now, baseline=baseline(before)), samples=sampled(*before),
                caps=PageLimits(baseline=10))  # fmt: skip
    assert "1 episode is listed without the conversation" in left_out(text)
