"""The page as text: golden, the same bytes, cut with a count, made piece by piece."""

from __future__ import annotations

import re
import tracemalloc
from html import unescape
from html.parser import HTMLParser

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.render.html import assets
from ci_agent_eval.render.html.page import render_html
from ci_agent_eval.render.html.page_limits import PageLimits
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import episode, failed_assertion, failing, report, tool_call, turn
from tests.render_reports import (
    HOSTILE,
    LINKS,
    agreed,
    compared,
    hostile,
    hostile_agreed,
    hostile_baseline,
)
from tests.tables import each_row
from tests.unit.render.html.rendered_page import data, left_out, page


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


def test_the_same_results_give_the_same_bytes_and_no_time():
    assert page(*suite()) == page(*reversed(suite()))
    assert not re.search(r"\b20\d\d-\d\d-\d\d|\d\d:\d\d:\d\d", page(*suite()))


def test_scenarios_that_need_a_look_stand_first():
    passing, skipped = episode("a"), episode("b", outcome="skipped", trajectory=None)
    errored = episode("c", outcome="error", reason="503", trajectory=None)
    rows = data(page(passing, skipped, errored, failing("d")), "scenario")
    assert [row["id"] for row in rows] == ["d", "c", "b", "a"]


@each_row(
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


def without_commands(text):
    """Leave out the commands, which are offered only for names that a shell takes as they are."""
    return re.sub("<h3>Commands</h3>.*?</pre>", "", text, flags=re.DOTALL)


MARKUP = dict.fromkeys(map(ord, "<>&\"'`{}%"), "x")


"""Characters of markup; the length of a text decides how many entries of a list fit."""


@settings(max_examples=settings.default.max_examples // 4)
@given(st.text(min_size=1, max_size=60).filter(str.strip))
@example(HOSTILE)
@example("</script><!--<script>")
@example('"><svg onload=alert(1)>')
@example("{{ 7*7 }}{% endblock %}")
@example("\u202e\u2066\x1b[31m\x00\u2028")
def test_no_text_adds_an_element_or_an_attribute(text):
    pages = everywhere(text)
    plain = everywhere(text.translate(MARKUP))
    for found, expected in zip(pages, plain, strict=True):
        assert elements(without_commands(found)) == elements(without_commands(expected))
    assert not re.search(
        "[\u202a-\u202e\u2066-\u2069\x1b\x00\u2028\u2029]", unescape("".join(pages))
    )


def list_causes(text):
    """Return the words of each cause in the list of causes."""
    found = re.search(r'<ol class="cause-list" role="list">(.*?)</ol>', text, re.DOTALL)[1]
    lines = re.findall(r"<li>(.*?)</li>", found, re.DOTALL)
    return [re.sub(r"<[^>]+>", "", unescape(line)) for line in lines]


def test_the_first_screen_says_the_same_as_the_comment():
    view = build_report_view(compared(), LINKS)
    text = "".join(render_html(view, (), (), budgets=SuiteBudgets()))
    comment = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", render_comment(view))
    comment = re.sub(r"<[^>]+>|[`*]", "", unescape(comment))
    lines = list_causes(text)
    assert len(lines) == len(view.cards) > 3
    for line in lines[:5]:
        assert line.partition(": ")[2] in comment
    changes = re.search(r'<dl class="changes">(.*?)</dl>', text, re.DOTALL)[1]
    for head, words in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", changes):
        assert f"{head}: {re.sub('<[^>]+>', '', unescape(words))}" in comment


def test_names_of_scenarios_in_a_cause_lead_to_them():
    items = [failing(f"a/b c&{n}", nodeid=f"t.py::t{n}") for n in (1, 2)]
    text = page(*items)
    names = re.search(r'<ul class="names">(.*?)</ul>', text, re.DOTALL)[1]
    assert re.findall(r'href="(.*?)"', names) == [
        "#scenario=a%2Fb%20c%261", "#scenario=a%2Fb%20c%262",
    ]  # fmt: skip


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
    rows = re.findall(r'<tr role="row"><th scope="row".*?</tr>', section, re.DOTALL)
    assert len(rows) == 4
    for told in ("payments", "the bank's sandbox is down", "2026-01-31, over: it gates again"):
        assert any(told in row for row in rows)
    assert "acknowledged: the new prompt is terse, until 2026-01-31" in section
    flaky = re.search(r'<details id="flaky">.*?</details>', text, re.DOTALL)[0]
    assert "1 flaky: passed only on a retry" in flaky
    assert "small_talk" in flaky
