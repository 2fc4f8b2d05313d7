"""The comment: it fits, it is well-formed, and nothing in it acts that an episode said."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

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
from ci_agent_eval.render.markdown.section import NAMES
from ci_agent_eval.render.markdown.size_limit import STEPS
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import episode, failed_assertion, failing, finding, report
from tests.render_reports import (
    HOSTILE,
    LINKS,
    REPORTS,
    everything_wrong,
    hostile,
    hostile_agreed,
    oversize,
)

PIECES = st.sampled_from(
    ["`", "``", "|", "\\", "\n", "\r\n", "\n\n", "<", ">", "</details>", "</summary>", "<!--", "-->",
     "@octocat", "#1", "GH-1", "a/b#2", "https://e.example", "www.e.example", "![a](b)", "[a](b)",
     "# ", "- ", "> ", "***", "___", "~~~", "```", "::error::", "##[error]", "&#64;", "&lt;", "\x1b[0m",
     "\x00", "\u2028", "\u202e", "\u200b", "\t", " ", "$", ":tada:", "\U0001f600", "x"]
)  # fmt: skip
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
    assert html.count("<details>") == html.count("</details>") == html.count("<summary>")
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


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("render", [render_comment, render_step_summary, render_check_summary])
def test_every_rendering_is_ours_alone_and_well_formed(name, render):
    text = render(build_report_view(REPORTS[name](), LINKS))
    well_formed(text)
    assert find_foreign_elements(text, LINKS.prefixes) == ()


@given(text=TEXT, limit=st.integers(MIN_LIMIT, 20_000))
def test_any_text_in_any_agreement_is_harmless_and_fits_any_limit(text, limit):
    comment = render_comment(build_report_view(hostile_agreed(text), LINKS), limit=limit)
    assert len(comment.encode()) <= limit
    well_formed(comment)
    assert find_foreign_elements(comment, LINKS.prefixes) == ()


@given(text=TEXT, limit=st.integers(MIN_LIMIT, 20_000))
def test_any_text_in_any_field_is_harmless_and_fits_any_limit(text, limit):
    comment = render_comment(build_report_view(hostile(text), LINKS), limit=limit)
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


def test_hostile_text_is_still_there_to_be_read():
    comment = render_comment(build_report_view(hostile(), Links()))
    shown = MarkdownIt("commonmark").enable("table").render(comment)
    assert "me@evil.example" in shown
    assert "&lt;/details&gt;&lt;/code&gt;" in shown
    assert "⟨U+202E⟩RTL" in shown


@pytest.mark.parametrize("limit", [MIN_LIMIT, 1_500, 3_000, 8_000, 20_000, 60_000])
@pytest.mark.parametrize("build", [oversize, hostile, everything_wrong])
def test_comment_keeps_its_limit_in_bytes(build, limit):
    comment = render_comment(build_report_view(build(), LINKS), limit=limit)
    assert len(comment.encode()) <= limit
    first, _, rest = comment.split("\n", 2)
    assert first == render_marker(build().summary.suite)
    assert rest.startswith("### ❌ Agent evals failed: ")
    well_formed(comment)


@pytest.mark.parametrize("links", [LINKS, Links()])
def test_what_was_left_out_is_counted_and_found_elsewhere(links):
    comment = render_comment(build_report_view(oversize(), links), limit=6_000)
    (note,) = re.findall(r"^Left out to fit 6,000 bytes: (.*)$", comment, re.MULTILINE)
    assert "4,800 of 4,800 failing assertions" in note
    assert "1 of 1 result file" in note
    assert ("artifacts/11" in note) is (links is LINKS)
    assert ("`verdict.json`" in note) is (links is not LINKS)


def test_long_list_is_cut_and_counted_even_where_there_is_room():
    comment = render_comment(
        build_report_view(report(*(failing(f"s{n:03}") for n in range(120))), LINKS), limit=10**6
    )
    assert "\n\nand 70 more; the whole is in [the report](" in comment
    assert comment.count("\n| `s") == 50
    assert "Left out" not in comment


def test_everything_fits_where_the_limit_allows_it():
    text = render_step_summary(build_report_view(oversize(), LINKS), limit=10**7)
    assert text.count("| `scenario_") == 120
    assert "Left out" not in text


def test_every_section_is_dropped_by_some_step():
    assert {name for name, lines in STEPS if lines == 0} == set(NAMES)


def test_limit_too_small_for_a_verdict_is_refused():
    with pytest.raises(ValueError, match="1000 or more"):
        render_comment(build_report_view(report(episode()), LINKS), limit=MIN_LIMIT - 1)


def test_links_longer_than_the_limit_are_dropped_before_the_evidence():
    long = Links("https://github.com", "o/r", "a" * 40, run_url="https://github.com/" + "x" * 2_000)
    comment = render_comment(build_report_view(report(episode()), long), limit=MIN_LIMIT)
    assert len(comment.encode()) <= MIN_LIMIT
    assert "1 episode ran: 1 judged" in comment
    assert "xxx" not in comment


def test_verdict_is_kept_where_even_the_evidence_does_not_fit():
    wrong = everything_wrong()
    named = replace(wrong, summary=replace(wrong.summary, suite="\u202e" * 100))
    comment = render_comment(build_report_view(named, LINKS), limit=MIN_LIMIT)
    assert len(comment.encode()) <= MIN_LIMIT
    assert render_headline(wrong) in comment
    assert "All else was left out to fit 1,000 bytes; the whole is in `verdict.json`" in comment


def test_passing_comment_is_verdict_and_evidence_with_one_fold_between():
    comment = render_comment(build_report_view(REPORTS["passing"](), LINKS))
    outside = re.sub(r"<details>.*</details>\n\n", "", comment, flags=re.DOTALL)
    first, _state, verdict, blank, evidence, end = outside.split("\n")
    assert (first, blank, end) == (render_marker("default"), "", "")
    assert verdict == "### ✅ Agent evals passed: 3 of 3 required scenarios, 9 episodes"
    assert evidence.startswith("9 episodes ran: 9 judged, 0 errors, 0 skipped · calls: 9 live, ")
    assert comment.count("<details>") == 1


def test_rows_link_to_the_line_at_the_head_commit():
    comment = render_comment(build_report_view(report(failing("a")), LINKS))
    line = f"https://github.com/acme/support-agent/blob/{LINKS.sha}/tests/test_refunds.py#L48"
    assert f"| [`test_refunds.py:48`]({line}) |" in comment
    assert "](http" not in render_comment(build_report_view(report(failing("a")), Links()))
    assert "| `tests/test_refunds.py:48` |" in render_comment(
        build_report_view(report(failing("a")), Links())
    )


def test_same_results_in_any_order_give_the_same_bytes():
    episodes = [
        failing("a", iteration=n, assertions=[failed_assertion(f"c{n}")]) for n in range(1, 6)
    ]
    episodes += [episode(f"s{n}") for n in range(10)]
    findings = [finding(kind) for kind in ("duplicate", "disagreement", "unreadable_file")]
    texts = set()
    for seed in range(8):
        random.Random(seed).shuffle(episodes)
        random.Random(seed).shuffle(findings)
        texts.add(
            render_comment(build_report_view(report(*episodes, findings=tuple(findings)), LINKS))
        )
    assert len(texts) == 1


def test_error_beside_a_failed_assertion_is_not_told_as_the_agents_fault():
    both = report(
        failing("a", iteration=1), episode("a", iteration=2, outcome="error", reason="429")
    )
    failing_part, errors = render_comment(build_report_view(both, LINKS)).split(
        "**Ended in an error, not judged**"
    )
    assert "429" not in failing_part
    assert errors.count("429") == 1
    assert "| `a` | 1 / 2 | `429` |" in errors


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
        ),
    )
    assert "want of a file" not in render_check_summary(build_report_view(report(failing()), LINKS))


def test_headline_comment_is_found_again_and_says_what_is_missing():
    text = render_headline_comment(build_report_view(hostile(), LINKS))
    first, verdict = text.split("\n")[:2]
    assert first == render_marker(HOSTILE)
    assert verdict.startswith("### ❌ Agent evals failed: ")
    assert "withheld" in text
    assert find_foreign_elements(text, LINKS.prefixes) == ()
