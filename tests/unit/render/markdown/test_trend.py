"""The trend: charts by Mermaid's rules, whatever runs are called, and the same as a table."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.comparison.model import TrendPoint
from ci_agent_eval.render.markdown.guard import find_foreign_elements
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.markdown.trend import render_trend, render_trend_block
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import baseline, episode, report
from tests.compared_reports import trending
from tests.render_reports import HOSTILE
from tests.unit.render.markdown.test_report import well_formed

# What the parser of Mermaid's xyChart takes, and not more; `make mermaid` asks the parser itself.
TEXT = r'"[^"\n]*"'
NUMBER = r"\d+(?:\.\d+)?"
GRAMMAR = re.compile(
    rf"""%%\{{init: \{{"themeVariables": \{{"xyChart": \{{"plotColorPalette": "#[0-9a-f]{{6}}"\}}\}}\}}\}}%%
xychart-beta
    accDescr: [^\n]+
    title {TEXT}
    x-axis \[({TEXT}(?:, {TEXT})*)\]
    y-axis {TEXT} 0 --> ({NUMBER})
    line \[({NUMBER}(?:, {NUMBER})*)\]
"""
)
POINTS = st.lists(
    st.builds(
        TrendPoint,
        label=st.one_of(st.text(max_size=30), st.sampled_from(["a", 'a"]', HOSTILE])),
        pass_rate=st.none() | st.floats(0, 1),
        cost_usd=st.none() | st.floats(0, 1e12),
    ),
    min_size=3,
    max_size=21,
)


def charts(text):
    return re.findall(r"^```mermaid\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@given(points=POINTS)
def test_charts_keep_to_the_grammar_whatever_the_runs_are(points):
    text = render_trend(points)
    well_formed(text)
    assert find_foreign_elements(text, ()) == ()
    for chart in charts(text):
        labels, top, values = GRAMMAR.fullmatch(chart).groups()
        names = re.findall(r'"[^"]*"', labels)  # a label may hold a comma itself
        figures = [float(value) for value in values.split(", ")]
        assert len(names) == len(figures) == len(set(names))
        assert 0 <= max(figures) <= float(top)
    table = re.split(r"^```$", text, flags=re.MULTILINE)[-1]  # a label may hold backticks
    assert len(table.strip().split("\n")) == len(points) + 2


def point(label, rate=1.0, cost=0.5):
    return TrendPoint(label, rate, cost)


def test_runs_of_one_commit_are_told_apart_on_the_axis():
    first, _ = charts(render_trend([point("a"), point("a"), point(""), point("a"), point("")]))
    assert 'x-axis ["a", "a (2)", "run 3", "a (3)", "this run"]' in first


def test_what_was_not_measured_is_left_out_of_the_chart_and_said_in_the_table():
    text = render_trend([point("a"), point("b", None, None), point("", 0.5, 0)])
    rates, costs = charts(text)
    assert 'x-axis ["a", "this run"]' in rates
    assert "line [100, 50]" in rates
    assert "line [0.5, 0]" in costs
    assert "| `b` | – | – |" in text


@pytest.mark.parametrize("cost", [None, 0.0])
def test_there_is_no_chart_of_nothing(cost):
    text = render_trend([point("a", 1.0, cost), point("", 1.0, cost)])
    assert len(charts(text)) == 1


def test_numbers_have_no_exponent():
    _, costs = charts(render_trend([point("a", 1, 1.5e-7), point("", 1, 4e-12)]))
    assert "line [0.00000015, 0]" in costs


@pytest.mark.parametrize(("runs", "points"), [(1, 0), (2, 3), (30, 21)])
def test_a_trend_needs_two_runs_and_has_the_latest(runs, points):
    built = report(episode(), baseline=baseline(*[[episode()]] * runs))
    text = render_trend_block(build_report_view(built).comparison.trend)
    assert len(re.findall("^[|] ", text, re.MULTILINE)) == (points + 1 if points else 0)


def test_the_comment_has_it_among_the_figures():
    comment = render_comment(build_report_view(trending()))
    figures = comment.split("<summary>All figures, and how sure they are</summary>")[1]
    assert "Trend of the last 6 runs of the baseline:" in figures.split("</details>")[0]
