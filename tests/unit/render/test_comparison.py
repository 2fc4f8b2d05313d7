"""What a baseline adds to every rendering: said once, in the same words, where a reader looks."""

from __future__ import annotations

import json

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.render.formats.annotations import list_annotations
from ci_agent_eval.render.formats.ctrf import render_ctrf
from ci_agent_eval.render.html.page import render_html
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.terminal.report import render_terminal
from tests.builders import (
    baseline,
    episode,
    failed_assertion,
    failing,
    report,
)
from tests.compared_reports import steps
from tests.render_reports import LINKS

TEN = range(1, 11)
LAX = {"min_pass_rate": 0.1}


def comment(built):
    return render_comment(build_report_view(built, LINKS))


def terminal(built, width=200):
    return render_terminal(build_report_view(built), color=False, width=width)


def regressing(**policy):
    quiet = failed_assertion("is polite", reason=None)
    return report(
        *(episode("tone", iteration=n, **LAX) for n in (1, 2)),
        *(failing("tone", iteration=n, assertions=[quiet], **LAX) for n in range(3, 11)),
        episode("other"),
        policy=GatePolicy(**policy),
        baseline=baseline([*(episode("tone", iteration=n, **LAX) for n in TEN), episode("other")]),
    )


def test_a_failed_check_of_a_regression_does_not_say_that_nothing_changed():
    failure, warning = list_annotations(build_report_view(regressing()))
    assert failure.message.startswith("regression, adjusted p")
    assert warning.message.startswith(
        "the check failed: is polite\npasses 2/10, regression, adjusted p"
    )


def test_in_ctrf_a_regression_that_warns_passed():
    tests = json.loads(render_ctrf(build_report_view(regressing(regressions="warn"))))["results"][
        "tests"
    ]
    assert [t["status"] for t in tests if t["name"] == "tone"] == ["passed"]


def test_on_the_page_a_renamed_tool_and_a_new_one_have_a_line_each():
    """In comment and terminal, `test_compared_texts` has them."""
    names = [f"s{n}" for n in range(6)]
    built = report(
        *(episode(s, iteration=n, **steps("@find", "<b>ask")) for s in names for n in TEN),
        baseline=baseline(
            [episode(s, iteration=n, **steps("look_up")) for s in names for n in TEN]
        ),
    )
    page = "".join(render_html(build_report_view(built), [], [], budgets=SuiteBudgets()))
    tools = ("look_up", "@find", "&lt;b&gt;ask")
    before, after, new = (f"<code><bdi>{tool}</bdi></code>" for tool in tools)
    assert f"<p>tool {before} is now {after} in 6 scenarios</p>" in page
    assert f"<p>{new} is newly called in 6 scenarios</p>" in page
