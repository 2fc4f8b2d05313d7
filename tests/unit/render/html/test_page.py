"""The page as text: golden, the same bytes, cut with a count, made piece by piece."""

from __future__ import annotations

import json
import re
import tracemalloc
from html import unescape
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.render.html import assets
from ci_agent_eval.render.html.page import render_html
from ci_agent_eval.render.html.page_beginning import PAGE_BEGINNING
from ci_agent_eval.render.html.page_limits import PageLimits
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.results.samples import SampleCollector
from tests.builders import (
    baseline,
    episode,
    failed_assertion,
    failing,
    report,
    tool_call,
    turn,
)
from tests.render_reports import (
    HOSTILE,
    LINKS,
    agreed,
    compared,
    hostile,
    hostile_agreed,
    hostile_baseline,
    no_baseline,
    regressed,
    shards_broken,
)


def pieces(*episodes, built=None, caps=None, links=LINKS, budgets=None, samples=()):
    ordered = sorted(episodes, key=lambda item: item.key)
    return render_html(
        build_report_view(built or report(*ordered), links),
        [build_episode_record(item) for item in ordered],
        map(canonical_json, ordered),
        budgets=budgets or SuiteBudgets(),
        samples=samples,
        caps=caps or PageLimits(),
    )


def page(*episodes, **options):
    return "".join(pieces(*episodes, **options))


def data(text, name):
    """Return the data of one of the page's lists."""
    return json.loads(re.search(f'id="{name}-data">(.*?)</script>', text, re.DOTALL)[1])


def left_out(text):
    found = re.search(r'id="left-out".*?<ul>(.*?)</ul>', text, re.DOTALL)
    return re.findall(r"<li>(.*?)</li>", found[1]) if found else []


def suite():
    call = tool_call("issue_refund", arguments={"order_id": 1002}, duration_ms=31)
    broken = tool_call("track_parcel", result=None, error="HTTP 503")
    said = {"role": "user", "content": "My machine leaks."}
    told = turn("On its way.", source="live", latency_ms=950, cost_usd=0.004, tool_calls=[call],
                tokens={"input": 700, "output": 90, "cached": 300})  # fmt: skip
    return (
        episode("refund", trajectory={"turns": [said, told]}, model="support-2"),
        failing(
            "refund",
            iteration=2,
            assertions=[failed_assertion("asks a manager"), failed_assertion("is kind", severity="warning")],
            trajectory={"turns": [said, {**told, "latency_ms": 1400, "cost_usd": 0.006}]},
            budgets={"tool_calls": 0, "latency_ms": {"p95": None, "limit": 2000, "hard": False}},
        ),
        episode("parcel", mode="evaluation", outcome="error", reason="503", stop_reason="server_error",
                scores=[{"name": "warmth", "value": 0.7}], metadata={"day": "Monday"},
                trajectory={"turns": [said, turn("", tool_calls=[broken])]}),
        episode("skipped", outcome="skipped", reason="no key", trajectory=None),
    )  # fmt: skip


def test_the_page_is_the_golden_one(golden):
    budgets = SuiteBudgets.model_validate({"total_cost_usd": 0.5, "total_tokens": 100})
    text = page(*suite(), budgets=budgets)
    # Script and style are files of their own, that a reviewer need not read twice.
    for name, own in (("script", assets.read_script()), ("style", assets.read_style())):
        assert f"<{name}>{own}</{name}>" in text
        text = text.replace(own, f"[{name}]")
    golden("html/small.html", re.sub("sha256-[A-Za-z0-9+/=]{44}", "sha256-[hash]", text))


def test_the_page_begins_as_ours_do():
    assert page().startswith(PAGE_BEGINNING)


def test_the_same_results_give_the_same_bytes_and_no_time():
    assert page(*suite()) == page(*reversed(suite()))
    assert not re.search(r"\b20\d\d-\d\d-\d\d|\d\d:\d\d:\d\d", page(*suite()))


def test_an_episode_says_all_that_it_holds():
    rows = data(page(*suite()), "episode")
    assert [row["number"] for row in rows] == [1, 2, 3, 4]
    parcel, first, second, skipped = rows
    assert parcel["evaluation"] is True
    assert parcel["stopped"] == "server error"
    assert parcel["scores"] == [{"name": "warmth", "value": "0.7", "reason": ""}]
    assert parcel["turns"][1]["calls"][0]["error"] == "HTTP 503"
    assert first["figures"] == ["1 turn", "1 tool call", "790 tokens", "$0.004"]
    assert first["turns"][1]["notes"] == [
        "live",
        "950 ms",
        "700 (300 cached) tokens in, 90 out",
        "$0.004",
    ]
    assert second["over"] is True
    assert [check["passed"] for check in second["checks"]] == [False, False]
    assert second["checks"][1]["warning"] is True
    assert second["budgets"] == [
        {"name": "tool calls", "used": "1", "limit": "0", "share": 99.0, "over": True},
        {
            "name": "latency, only turn",
            "used": "1,400 ms",
            "limit": "2,000 ms",
            "share": 0.7,
            "soft": True,
        },
    ]
    assert "turns" not in skipped


def test_retries_are_told_apart():
    rows = data(page(failing("a"), episode("a", attempt=2), episode("b")), "episode")
    assert [(row.get("attempt"), row.get("attempts")) for row in rows] == [
        (None, 2), (2, 2), (None, None),
    ]  # fmt: skip


def test_evaluations_are_told_apart():
    good = {"name": "is kind", "passed": True, "score": 0.8}
    text = page(episode("tone", mode="evaluation", assertions=[good]), episode("refund"))
    tone, refund = sorted(data(text, "scenario"), key=lambda row: row["id"], reverse=True)
    assert (tone["evaluation"], tone["score"]) == (True, "0.80")
    assert "evaluation" not in refund
    assert "Evaluations: 1 of 1 conversation passed" in text
    assert "Evaluations" not in page(episode("refund"))


def test_scenarios_with_trouble_come_first():
    found = data(page(episode("a"), failing("b"), failing("c", gate="advisory")), "scenario")
    assert [(row["id"], row["status"]) for row in found] == [
        ("b", "failing"), ("c", "failing"), ("a", "passing"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("caps", "sentence"),
    [
        (PageLimits(text=3), "texts are shown only in its beginning"),
        (PageLimits(items=1), "entries of lists are left out"),
        (PageLimits(failing=1), "1 episode is listed without the conversation"),
        (PageLimits(rows=1), "3 episodes are not listed"),
        (PageLimits(scenarios=1), "2 scenarios are not listed"),
        (PageLimits(conversation=10), "entries of lists are left out"),
    ],
)
def test_what_is_cut_is_said_with_a_count(caps, sentence):
    told = left_out(page(*suite(), caps=caps))
    assert any(line.endswith(sentence) or sentence in line for line in told), told


def test_of_a_whole_page_nothing_is_said():
    assert left_out(page(*suite())) == []


def test_links_lead_to_the_web_alone():
    links = Links(
        "javascript:alert(1)//", "a/b", "c" * 40, "javascript:alert(2)", "data:text/html,x"
    )
    text = page(*suite(), links=links)
    assert "javascript" not in text.replace("JavaScript", "")
    assert 'href="data:' not in text
    assert all(url is None for _, url in data(text, "place"))


class Elements(HTMLParser):
    """Every element with its attributes, in order."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, sorted(name for name, _ in attributes)))

    def handle_comment(self, data):
        self.found.append(("comment", []))


def elements(text):
    parser = Elements()
    parser.feed(text)
    parser.close()
    return parser.found


def everywhere(text):
    item = failing(
        text, nodeid=text, file=text, agent=text, model=text, reason=text,
        metadata={text: text},
        assertions=[failed_assertion(text, reason=text, file=text)],
        scores=[{"name": text, "value": 0.5, "reason": text}],
        budgets={"custom": {text: {"limit": 1, "used": 2, "unit": text}}},
        trajectory={"turns": [{"role": "user", "content": text}, turn(text, tool_calls=[
            tool_call(text, arguments={text: text}, result=text),
            tool_call(text, result=None, error=text)])]},
    )  # fmt: skip
    # Long texts are cut, and paths of the repository are links: both add elements of ours.
    apart = {"links": Links(), "caps": PageLimits(name=9_000)}
    built = hostile(text), hostile_baseline(text), hostile_agreed(text)
    return page(item, **apart), *(page(built=one, **apart) for one in built)


PLAIN = tuple(map(elements, everywhere("plain")))


@given(st.text(min_size=1, max_size=60).filter(str.strip))
@example(HOSTILE)
@example("</script><!--<script>")
@example('"><svg onload=alert(1)>')
@example("{{ 7*7 }}{% endblock %}")
@example("\u202e\u2066\x1b[31m\x00\u2028")
def test_no_text_adds_an_element_or_an_attribute(text):
    pages = everywhere(text)
    assert tuple(map(elements, pages)) == PLAIN
    assert not re.search(
        "[\u202a-\u202e\u2066-\u2069\x1b\x00\u2028\u2029]", unescape("".join(pages))
    )


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
    assert chips(page(built=regressed()), "refund") == [("warning", "scenario increase")]
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


def test_every_reason_against_a_scenario_stands_in_its_one_line():
    text = unescape(page(built=compared()))
    why = re.search(r'<ul class="reasons">(.*?)</ul>', text, re.DOTALL)[1]
    lines = re.findall(r"<li>(.*?)</li>", why, re.DOTALL)
    (refund,) = [line for line in lines if "refund_over_limit" in line]
    assert "1 of 5 iterations pass, 100% required; regression: passes less often: 1 of 5" in refund
    reasons = compared().verdict.reasons
    assert len(lines) == len({reason.scenario_id for reason in reasons}) < len(reasons)


def test_what_is_wrong_with_the_shards_is_the_first_reason_and_hides_what_follows():
    text = unescape(page(built=shards_broken()))
    why = re.search(r'<ul class="reasons">(.*?)</ul>', text, re.DOTALL)[1]
    lines = re.findall(r"<li>(.*?)</li>", why, re.DOTALL)
    assert lines[0].startswith("shards: shard 3 of 7 left no results")
    assert lines[1] == "12 findings that may follow from it"
    assert "in one of two" not in why
    assert "<summary>12 findings that may follow from it</summary>" in text


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


def test_the_conversations_are_those_of_the_ways_that_are_shown():
    usual = [episode("refund", iteration=n, **went("Usual.", "ask", "pay")) for n in (2, 3)]
    before = [episode("refund", iteration=1, **went("Odd.", "sing")), *usual]
    now = [
        failing("refund", iteration=1, **went("Odd.", "dance")),
        *(failing("refund", iteration=n, **went("Paid.", "pay")) for n in (2, 3)),
    ]
    (pair,) = beside(now, before).values()
    assert (pair["turns"][1]["text"], pair["now"]) == ("Usual.", 2)


def test_a_scenario_that_did_not_change_has_no_conversation_of_the_base():
    same = [episode("refund", **went("Wait.", "ask"))]
    other = [episode("refund", **went("Wait.", "sing"))]
    assert beside(same, other) == {}


def test_a_conversation_that_has_no_room_is_said_to_be_left_out():
    before, now = [episode("a"), episode("b")], [failing("a"), failing("b")]
    pairs = beside(now, before, caps=PageLimits(baseline=10))
    assert [("turns" in pair) for pair in pairs.values()] == [True, False]
    text = page(*now, built=report(*now, baseline=baseline(before)), samples=sampled(*before),
                caps=PageLimits(baseline=10))  # fmt: skip
    assert "1 episode is listed without the conversation" in left_out(text)


def test_no_baseline_is_said_on_the_page():
    assert "No baseline: evals/base is not there" in page(built=no_baseline())


def test_the_page_is_made_while_it_is_written():
    read = []

    def lines():
        for item in many:
            read.append(item)
            yield canonical_json(item)

    many = [
        episode("a", iteration=n, trajectory={"turns": [turn("x" * 7_000)]}) for n in range(100)
    ]
    made = render_html(
        build_report_view(report(*many), Links()),
        [build_episode_record(item) for item in many],
        lines(),
        budgets=SuiteBudgets(),
    )
    next(made)
    next(made)
    assert 0 < len(read) < 50


def test_memory_does_not_grow_with_what_is_said():
    one = canonical_json(episode("a", trajectory={"turns": [turn("x" * 8_000)] * 10}))
    facts = build_episode_record(episode("a"))
    many = 300
    built = report(episode("a"))
    page_pieces = render_html(
        build_report_view(built, Links()), [facts] * many, [one] * many, budgets=SuiteBudgets()
    )
    tracemalloc.start()
    size = sum(len(piece) for piece in page_pieces)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 20_000_000
    assert peak < size / 5


def test_what_was_agreed_stands_on_the_page_with_owner_reason_and_day():
    text = unescape(page(built=agreed()))
    section = re.search(r'<section id="agreed".*?</section>', text, re.DOTALL)[0]
    assert "In quarantine, not gating: 3 scenarios (2 not passing); quarantine over" in section
    rows = re.findall(r"<tr><th.*?</tr>", section, re.DOTALL)[1:]
    assert len(rows) == 4
    for told in ("payments", "the bank's sandbox is down", "2026-01-31, over: it gates again"):
        assert any(told in row for row in rows)
    assert "acknowledged: the new prompt is terse, until 2026-01-31" in section
    flaky = re.search(r'<details id="flaky">.*?</details>', text, re.DOTALL)[0]
    assert "1 flaky: passed only on a retry" in flaky
    assert "small_talk" in flaky


def test_without_agreements_there_is_no_section_of_them():
    text = page(built=compared())
    assert 'id="agreed"' not in text
    assert 'id="flaky"' not in text
