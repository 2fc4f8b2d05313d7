"""The report for a terminal."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from tests.builders import failed_assertion, failing, report
from tests.render_reports import REPORTS, failing_over_budget, hostile


def test_failing_scenarios_then_budgets_then_totals_then_the_verdict():
    text = render_terminal(build_report_view(failing_over_budget()), color=False, width=120)
    places = [
        text.index(part)
        for part in ("refund_over_limit  2/4", "tests/test_refunds.py:48", "6, limit 4 (+50 %)",
                     "pass rate", "7 episodes ran", "Agent evals failed: ")
    ]  # fmt: skip
    assert places == sorted(places)


@pytest.mark.parametrize("name", REPORTS)
def test_colour_adds_only_colour(name):
    built = REPORTS[name]()
    plain = render_terminal(build_report_view(built), color=False, width=80)
    colored = render_terminal(build_report_view(built), color=True, width=80)
    assert "\x1b" not in plain
    assert colored != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == plain


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_lines_keep_the_width(width):
    lines = render_terminal(
        build_report_view(failing_over_budget()), color=False, width=width
    ).splitlines()
    assert max(map(len, lines)) <= max(width, 46)


@pytest.mark.parametrize("name", REPORTS)
def test_last_line_is_the_verdict(name):
    built = REPORTS[name]()
    assert render_terminal(build_report_view(built), color=False, width=10_000).splitlines()[
        -1
    ] == render_headline(built)


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
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


@pytest.mark.parametrize("width", range(40, 80))
def test_wrapping_moves_no_command_to_the_start_of_a_line(width):
    check = failed_assertion("a", reason="some words ::error::x and ::set-output name=a::b too" * 3)
    shown = render_terminal(
        build_report_view(report(failing(assertions=[check]))), color=False, width=width
    )
    assert not any(line.lstrip().startswith("::") for line in shown.splitlines())


def test_long_list_is_cut_and_counted():
    text = render_terminal(
        build_report_view(report(*(failing(f"s{n}") for n in range(60)))), color=False, width=80
    )
    assert "Failing scenarios (60)" in text
    assert "  and 10 more, in verdict.json\n" in text
