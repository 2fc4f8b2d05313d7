"""The comment: it fits, it is well-formed, and nothing in it acts that an episode said."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ci_agent_eval.analysis.comparison.model import SuiteChange
from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.guard import find_foreign_elements
from ci_agent_eval.render.markdown.report import (
    MIN_LIMIT,
    render_check_summary,
    render_comment,
    render_headline_comment,
    render_marker,
    render_step_summary,
)
from ci_agent_eval.render.phrases import Quoted
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import episode, failed_assertion, failing, report
from tests.comment_reports import hostile_behaviour
from tests.render_reports import (
    HOSTILE,
    LINKS,
    REPORTS,
    everything_wrong,
    hostile,
    hostile_agreed,
    oversize,
)
from tests.tables import each_row

PIECES = st.sampled_from(
    ["`", "``", "|", "\\", "\n", "\r\n", "\n\n", "<", ">", "</details>", "</summary>", "<!--", "-->",
     "@octocat", "#1", "GH-1", "a/b#2", "https://e.example", "www.e.example", "![a](b)", "[a](b)",
     "# ", "- ", "> ", "***", "___", "~~~", "```", "::error::", "##[error]", "&#64;", "&lt;", "\x1b[0m",
     "\x00", "\u2028", "\u202e", "\u200b", "\t", " ", "$", ":tada:", "\U0001f600", "x"]
)  # fmt: skip
OUR_PART = re.compile(
    r"@@ (?:user, turn \d+|tool calls|answer)(?:: before \(-\), now \(\+\)|: now \(\+\))? @@"
    r"|@@ state: before the episode \(-\), after it \(\+\) @@"
)
TEXT = (
    st.one_of(
        st.text(min_size=1, max_size=80), st.lists(PIECES, min_size=1, max_size=30).map("".join)
    )
    # pydantic refuses lone surrogates, so that no episode holds one.
    .filter(lambda text: not re.search("[\ud800-\udfff]", text))
)


def well_formed(markdown: str) -> None:
    """Balanced folds, closed fences, tables whose rows all have as many cells as their head."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    html = "".join(token.content for token in tokens if token.type == "html_block")
    opened = len(re.findall("<details(?: open)?>", html))
    assert opened == html.count("</details>") == html.count("<summary>")
    # markdown-it cuts and pads rows; the source tells how many cells there were.
    lines = markdown.split("\n")
    for token in tokens:
        if token.type == "table_open":
            first, last = token.map
            counts = {len(re.findall(r"(?<!\\)\|", line)) for line in lines[first:last]}
            assert len(counts) == 1, lines[first:last]
            assert last - first >= 3
            assert last == len(lines) or not lines[last].startswith("|")
    closed = [t.map[1] for t in tokens if t.type == "fence"]
    assert all(re.fullmatch("`{3,}", lines[end - 1]) for end in closed)


@each_row("name", REPORTS)
@each_row("render", [render_comment, render_step_summary, render_check_summary])
def test_every_rendering_is_ours_alone_and_well_formed(name, render):
    text = render(build_report_view(REPORTS[name](), LINKS))
    well_formed(text)
    assert find_foreign_elements(text, LINKS.prefixes) == ()


@given(text=TEXT, limit=st.integers(MIN_LIMIT, 20_000))
def test_any_text_in_any_field_is_harmless_and_fits_any_limit(text, limit):
    for built in (hostile(text), hostile_agreed(text)):
        comment = render_comment(build_report_view(built, LINKS), limit=limit)
        assert len(comment.encode()) <= limit
        well_formed(comment)
        assert find_foreign_elements(comment, LINKS.prefixes) == ()


@given(text=TEXT)
def test_any_text_in_a_whole_comment_stands_in_code(text):
    comment = render_comment(build_report_view(hostile(text), Links()))
    well_formed(comment)
    assert find_foreign_elements(comment, ()) == ()
    rendered = MarkdownIt("commonmark").enable("table").render(comment)
    outside = re.sub(r"<code.*?</code>", "", rendered, flags=re.DOTALL)
    # Only our own words are left, and they hold none of these.
    assert not re.search(r"@|#\d|://|&amp;|<img|<a |`|\\", outside)


@given(text=TEXT, limit=st.integers(MIN_LIMIT, 20_000))
@settings(max_examples=30)
def test_any_text_that_is_said_stays_in_its_line_of_the_diff(text, limit):
    view = build_report_view(hostile_behaviour(text), LINKS)
    comment = render_comment(view, limit=limit)
    assert len(comment.encode()) <= limit
    well_formed(comment)
    assert find_foreign_elements(comment, LINKS.prefixes) == ()
    tokens = MarkdownIt("commonmark").enable("table").parse(render_comment(view))
    diffs = [token.content for token in tokens if token.type == "fence" and token.info == "diff"]
    for line in "".join(diffs).splitlines():
        assert line.startswith(("  ", "- ", "+ ")) or OUR_PART.fullmatch(line)


CUTS = re.compile(r"^Left out to fit [\d,]+ bytes: (.*); the whole is in (.*)\.$", re.MULTILINE)


@each_row("links", [LINKS, Links()])
def test_what_was_left_out_is_counted_and_found_elsewhere(links):
    comment = render_comment(build_report_view(oversize(), links), limit=1_000)
    ((_, where),) = CUTS.findall(comment)
    assert ("artifacts/11" in where) is (links is LINKS)
    assert ("`verdict.json`" in where) is (links is not LINKS)


def test_a_sixth_cause_is_counted_and_the_step_summary_has_it():
    checks = [
        failing(f"s{n}", assertions=[failed_assertion(f"check {chr(97 + n)}")]) for n in range(9)
    ]
    view = build_report_view(report(*checks), LINKS)
    comment = render_comment(view)
    assert comment.count("❌ <code>s") == 5
    assert "\n❌ 4 more causes in 4 scenarios; the whole is in [the report](" in comment
    assert render_step_summary(view).count("❌ <code>s") == 9


@each_row("name", REPORTS)
def test_every_reason_to_fail_has_a_card(name):
    built = REPORTS[name]()
    view = build_report_view(built, LINKS)
    gating = [card for card in view.cards if card.role == "gates"]
    stated = any(isinstance(reason.message, SuiteChange) for reason in built.verdict.reasons)
    assert bool(gating) or view.has_passed or stated
    text = render_step_summary(view)
    for reason in built.verdict.reasons:
        if reason.scenario_id is not None:
            shown = Quoted(reason.scenario_id).shown
            assert shown in text or escape(shown) in text
    assert view.has_passed is built.passed


def test_limit_too_small_for_a_verdict_is_refused():
    with pytest.raises(ValueError, match="1000 or more"):
        render_comment(build_report_view(report(episode()), LINKS), limit=MIN_LIMIT - 1)


def test_links_longer_than_the_limit_are_dropped_before_the_last_line():
    long = Links("https://github.com", "o/r", "a" * 40, run_url="https://github.com/" + "x" * 2_000)
    comment = render_comment(build_report_view(report(episode()), long), limit=MIN_LIMIT)
    assert len(comment.encode()) <= MIN_LIMIT
    assert "\n1 episode · " in comment
    assert "xxx" not in comment


def test_verdict_is_kept_where_even_the_evidence_does_not_fit():
    wrong = everything_wrong()
    named = replace(wrong, summary=replace(wrong.summary, suite="\u202e" * 100))
    comment = render_comment(build_report_view(named, LINKS), limit=MIN_LIMIT)
    assert len(comment.encode()) <= MIN_LIMIT
    assert render_headline(wrong) in comment
    assert "All else was left out to fit 1,000 bytes; the whole is in `verdict.json`" in comment


def test_error_beside_a_failed_assertion_is_not_told_as_the_agents_fault():
    both = report(
        failing("a", iteration=1), episode("a", iteration=2, outcome="error", reason="429")
    )
    comment = render_comment(build_report_view(both, LINKS))
    (error,) = [line for line in comment.splitlines() if "429" in line]
    assert error.startswith("❌ `a` 1 of 2 episodes ended in an error · `429` · ")
    assert "❌ <code>a</code> 0/1 · fails <code>says sorry</code>" in comment


def test_marker_is_one_comment_that_no_suite_name_ends():
    names = [
        "default",
        "a b",
        "a_b",
        "a--b",
        "-->",
        "\n",
        HOSTILE,
        HOSTILE + "x",
        "é" * 60,
        "é" * 61,
    ]
    markers = [render_marker(name) for name in names]
    assert len(set(markers)) == len(names)
    assert all(re.fullmatch(r"<!-- agent-eval suite=[\w.%~]+ -->", text) for text in markers)
    assert all(len(text) < 100 for text in markers)


def test_check_summary_counts_what_could_not_be_annotated():
    assert "for want of a file: 2 problems" in render_check_summary(
        build_report_view(
            report(
                failing(file=None),
                failing(
                    "b",
                    file=None,
                    assertions=[failed_assertion(file="../x"), failed_assertion("n", file=None)],
                ),
            ),
            LINKS,
        )
    )
    assert "want of a file" not in render_check_summary(build_report_view(report(failing()), LINKS))


def test_headline_comment_is_found_again_and_says_what_is_missing():
    text = render_headline_comment(build_report_view(hostile(), LINKS))
    first, verdict = text.split("\n")[:2]
    assert first == render_marker(HOSTILE)
    assert verdict.startswith("### ❌ Agent evals failed: ")
    assert "withheld" in text
    assert find_foreign_elements(text, LINKS.prefixes) == ()
