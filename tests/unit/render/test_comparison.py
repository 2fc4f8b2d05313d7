"""What a baseline adds to every rendering: said once, in the same words, where a reader looks."""

from __future__ import annotations

import json
import re

import pytest

from ci_agent_eval.analysis.comparison.model import AllowedIncreases
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.findings import MissingShards, RepeatedShard
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.render.formats.annotations import count_unplaced, list_annotations
from ci_agent_eval.render.formats.ctrf import render_ctrf
from ci_agent_eval.render.headline import render_headline
from ci_agent_eval.render.html.page import render_html
from ci_agent_eval.render.markdown.report import render_comment
from ci_agent_eval.render.report_view import build_report_view
from ci_agent_eval.render.sentences import describe_reason
from ci_agent_eval.render.terminal.report import render_terminal
from tests.builders import (
    baseline,
    episode,
    failed_assertion,
    failing,
    finding,
    manifest_of,
    report,
    turn,
)
from tests.compared_reports import steps
from tests.render_reports import LINKS
from tests.tables import each_row

TEN = range(1, 11)
LAX = {"min_pass_rate": 0.1}


def comment(built):
    return render_comment(build_report_view(built, LINKS))


def terminal(built, width=200):
    return render_terminal(build_report_view(built), color=False, width=width)


def costing(cost, scenarios=6, latency=100):
    turns = [turn(cost_usd=cost, latency_ms=latency)]
    return [
        episode(f"s{n}", iteration=i, trajectory={"turns": turns})
        for n in range(scenarios)
        for i in (1, 2, 3)
    ]


@pytest.fixture
def dearer():
    policy = GatePolicy(increases=AllowedIncreases(cost=0.5, latency=0.5))
    return report(*costing(0.02), policy=policy, baseline=baseline(costing(0.01)))


def test_a_figure_that_rose_is_noted_although_it_has_no_file(dearer):
    assert count_unplaced(build_report_view(dearer)) == 1
    assert list_annotations(build_report_view(dearer)) == ()


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
        "the check failed: is polite\npasses 2 / 10, regression, adjusted p"
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
    assert "<p>Tool <bdi>look_up</bdi> → <bdi>@find</bdi> in 6 of 6 scenarios</p>" in page
    assert "<p>Tool <bdi>&lt;b&gt;ask</bdi> called in 0.0 % → 100.0 % of episodes" in page


@each_row(
    ("message", "said"),
    [
        (MissingShards((3,), 7), "shard 3 of 7 is missing"),
        (MissingShards((3, 5), 7), "shards 3, 5 of 7 are missing"),
        (MissingShards((1, 2, 3, 4, 5, 6), 9), "6 of 9 shards are missing"),
        (RepeatedShard(2, 7, 2), "shard 2 of 7 is there 2 times"),
        # Nobody reads a sentence, whatever it says.
        ("shard 3 of 7 left no results; do", "the shards are not one whole run"),
        ("the shards are of different commits; do", "the shards are not one whole run"),
    ],
)
def test_the_headline_names_the_shards_that_are_missing(message, said):
    built = report(episode(), findings=(finding("shards", where="", message=message),))
    assert render_headline(built) == f"Agent evals failed: {said}"
    assert "(empty)" not in comment(built) + terminal(built)
    assert not any(describe_reason(r).startswith(":") for r in built.verdict.reasons)


@each_row(
    ("reason", "crashes"),
    [
        ("KeyError: 'queue' (agent.py:4)", True),
        ("AgentRunError: model_error: the agent failed: KeyError: 'timeout'", True),
        ("desk.OrderNotFoundError: 1011", True),
        ("openai.RateLimitError: Error code: 429", False),
        ("ValueError: HTTP 503 from the model", False),
        ("httpx.ConnectError: refused", False),
        ("the process ended before the episode did", False),
    ],
)
def test_a_crash_of_what_passed_is_worse_and_an_outage_is_unknown(reason, crashes):
    built = report(
        *(episode(iteration=n, outcome="error", reason=reason) for n in (1, 2)),
        baseline=baseline([episode(iteration=n) for n in (1, 2)]),
    )
    text = comment(built)
    assert ("**Worse:** 1 scenario crashes now (2/2 before)" in text) is crashes
    assert ("**Unknown:** 1 of 1 scenario did not run to an end" in text) is not crashes


@each_row(
    ("kind", "message"),
    [
        ("shards", MissingShards((2,), 3)),
        ("interrupted", "the run ended early"),
        ("collection_error", "SyntaxError"),
    ],
)
def test_what_a_broken_run_did_not_come_to_has_not_vanished(kind, message):
    built = report(
        episode("stays"),
        findings=(finding(kind, where="", message=message),),
        baseline=baseline([episode("stays"), episode("lost")]),
        manifest=manifest_of("stays", "lost"),
    )
    text = comment(built)
    assert "1 scenario of the baseline did not run: `lost`" in text
    assert not re.search(r"vanished|acknowledge", text)
    # What an interrupted run left out is named, so that it can be run again.
    assert ("1 known scenario did not run" in text) is (kind != "shards")
