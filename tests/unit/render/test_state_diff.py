"""The changes of states, and faults on purpose, in comments, terminal and page."""

from __future__ import annotations

from ci_agent_eval.analysis.behaviour_pairs import ChangedPart, StateSummary
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.state import compare_states
from ci_agent_eval.render.behaviour_diff import list_state_lines
from ci_agent_eval.render.formats.brief import render_brief_json
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from ci_agent_eval.render.html.page import render_html
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from tests.builders import HOSTILE, failing, report
from tests.comment_reports import add_pairs

SHOP = compare_states(
    "shop",
    "database",
    {"orders/1": {"status": "paid"}},
    {"orders/1": {"status": "refunded"}, "refunds/7": {"usd": 39}},
)
LINES = [
    "@@ state: before the episode (-), after it (+) @@",
    "  shop",
    '- orders/1.status: "paid"',
    '+ orders/1.status: "refunded"',
    '+ refunds/7: {"usd": 39}',
]


def test_each_line_has_a_prefix():
    part = ChangedPart(HOSTILE, HOSTILE, HOSTILE)
    lines = list_state_lines([StateSummary(HOSTILE, (part,), 1_000, HOSTILE)])
    assert lines[0] == LINES[0]
    assert [line[:2] for line in lines[1:]] == ["  ", "  ", "- ", "+ ", "  "]
    assert all("\n" not in line and "\x1b" not in line for line in lines)
    assert lines[-1] == "  … 1,000 more changes"


def test_a_failing_episode_shows_what_it_changed():
    head = [failing(states=[SHOP])]
    built = add_pairs(report(*head), head, None)
    comment = render_comment(build_report_view(built))
    assert "```diff\n" + "\n".join(LINES) + "\n```" in comment
    again = parse_verdict(render_verdict(built))
    assert render_comment(build_report_view(again)) == comment
    assert LINES[2] in render_brief_json(build_report_view(built)).replace("\\", "")


def test_a_failing_episode_names_the_faults_that_its_tools_had():
    faults = [
        {"kind": "error", "tool": "find_order", "times": 2, "injected": 1},
        {"kind": "schema_change", "tool": "pay", "value": {"a": "b"}, "injected": 0},
    ]
    head = [failing(faults=faults)]
    built = add_pairs(report(*head), head, None)
    view = build_report_view(built)
    said = "injected fault: error of find_order (1 call)"
    page = "".join(render_html(view, [], [], budgets=SuiteBudgets()))
    for text in (render_comment(view), render_terminal(view, color=False, width=100), page):
        assert said in text
        assert "of pay" not in text
