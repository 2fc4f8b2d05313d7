"""The report for a terminal."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.contract.wording import count_columns
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from tests.builders import failed_assertion, failing, report
from tests.render_reports import REPORTS, failing_over_budget, hostile
from tests.tables import each_row


@each_row("name", REPORTS)
def test_colour_adds_only_colour(name):
    built = REPORTS[name]()
    plain = render_terminal(build_report_view(built), color=False, width=80)
    colored = render_terminal(build_report_view(built), color=True, width=80)
    assert "\x1b" not in plain
    assert colored != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


@each_row("width", [40, 60, 80, 120])
def test_lines_keep_the_width(width):
    text = render_terminal(build_report_view(failing_over_budget()), color=False, width=width)
    # A command stays on one line, so that it can be copied.
    lines = [line for line in text.splitlines() if not line.startswith("  again ")]
    assert max(map(len, lines)) <= max(width, 46)


def test_wide_characters_take_two_columns():
    answer = "返品は三十日以内に限ります。" * 20
    check = failed_assertion("期限を伝える", reason=answer)
    text = render_terminal(
        build_report_view(report(failing(assertions=[check]))), color=False, width=60
    )
    shown = [line for line in text.splitlines() if "限" in line]
    assert len(shown) > 2
    assert max(map(count_columns, shown)) in {59, 60}


@settings(max_examples=settings.default.max_examples // 2)
@given(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=200)
    | st.text(alphabet=":#[ ex\n", min_size=1, max_size=200),
    st.integers(1, 100),
)
def test_no_text_acts(text, width):
    shown = render_terminal(build_report_view(hostile(text)), color=False, width=width)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028]", shown)
    assert "##[" not in shown
    assert not re.search(r"^\s*::[a-zA-Z]", shown, re.MULTILINE)


@each_row("width", range(40, 80))
def test_wrapping_moves_no_command_to_the_start_of_a_line(width):
    check = failed_assertion("a", reason="some words ::error::x and ::set-output name=a::b too" * 3)
    shown = render_terminal(
        build_report_view(report(failing(assertions=[check]))), color=False, width=width
    )
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


def test_many_names_and_many_causes_are_cut_and_counted():
    same = [failing(f"s{n:02}") for n in range(60)]
    other = [
        failing(f"t_{letter}", assertions=[failed_assertion(f"is {letter}", reason="no")])
        for letter in "abcdefghijkl"
    ]
    text = render_terminal(build_report_view(report(*same, *other)), color=False, width=80)
    assert text.startswith("3 more causes in 3 scenarios, in verdict.json\n\n")
    assert "s18, s19, and 40 more\n" in text
