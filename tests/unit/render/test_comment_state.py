"""The one word that a comment is told apart by."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.model import NoBaseline
from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.render.comment_state import (
    compute_state,
    differs_from_baseline,
    parse_state,
)
from ci_agent_eval.render.links import Links
from ci_agent_eval.render.markdown.report import render_comment, render_headline_comment
from ci_agent_eval.render.report_view import build_report_view
from tests.builders import (
    agreement,
    baseline,
    episode,
    failing,
    finding,
    in_quarantine,
    report,
    turn,
)
from tests.render_reports import LINKS, REPORTS
from tests.tables import each_row

OVER = {"budgets": {"tool_calls": {"used": 6, "limit": 4}}}
PLAIN = (episode("a"), episode("b"))


def costing(usd, tokens=1):
    return {"trajectory": {"turns": [turn(cost_usd=usd, tokens={"input": tokens, "output": 1})]}}


@each_row("name", REPORTS)
def test_every_comment_holds_the_word_of_its_report(name):
    built = REPORTS[name]()
    state = compute_state(build_report_view(built))
    for text in (
        render_comment(build_report_view(built, LINKS)),
        render_comment(build_report_view(built, Links()), limit=1_000),
    ):
        assert parse_state(text) == state
        assert parse_state(text.replace("\n", " \r\n")) == state
    assert parse_state(render_headline_comment(build_report_view(built, LINKS))) is None


def test_figures_are_no_part_of_it():
    one = report(episode("a", **costing(1)), failing("b", **costing(1, 7)))
    other = report(episode("a", **costing(2)), failing("b", **costing(3, 9)))
    assert compute_state(build_report_view(one)) == compute_state(build_report_view(other))
    rare = [failing("a", iteration=1), *(episode("a", iteration=n) for n in (2, 3))]
    often = [*(failing("a", iteration=n) for n in (1, 2)), episode("a", iteration=3)]
    assert compute_state(build_report_view(report(*rare))) == compute_state(
        build_report_view(report(*often))
    )


DIFFERENT = {
    "passes": report(*PLAIN),
    "a fails": report(failing("a"), episode("b")),
    "b fails": report(episode("a"), failing("b")),
    "both fail": report(failing("a"), failing("b")),
    "a of an agent fails": report(failing("a", agent="x"), episode("b")),
    "a errs": report(episode("a", outcome="error"), episode("b")),
    "a is skipped": report(episode("a", outcome="skipped"), episode("b")),
    "a fails and is advisory": report(failing("a", gate="advisory"), episode("b")),
    "a is over budget": report(episode("a", **OVER), episode("b")),
    "the suite is over budget": report(
        *PLAIN, budgets=SuiteBudgets.model_validate({"total_tokens": 1})
    ),
    "a test fails": report(*PLAIN, tests=PlainTests(OutcomeTally(0, 1), (JUnitCase("t", "x", "failed"),))),
    "a file is broken": report(*PLAIN, findings=(finding(),)),
    "a fails in quarantine": report(
        failing("a"), episode("b"), quarantine=(in_quarantine("a"),)
    ),
    "a fails out of quarantine": report(
        failing("a"), episode("b"), quarantine=(in_quarantine("a", expired=True),)
    ),
    "there is no baseline": report(*PLAIN, baseline=NoBaseline("none")),
    "c is gone": report(*PLAIN, baseline=baseline([*PLAIN, episode("c")])),
    "c is gone and accepted": report(
        *PLAIN, baseline=baseline([*PLAIN, episode("c")]), acknowledged=(agreement("c"),)
    ),
    "a was mended": report(*PLAIN, baseline=baseline([failing("a"), episode("b")])),
    "b is new": report(*PLAIN, baseline=baseline([episode("a")])),
}  # fmt: skip


def test_what_a_reader_would_act_on_differently_has_another_word():
    words = {name: compute_state(build_report_view(built)) for name, built in DIFFERENT.items()}
    assert len(set(words.values())) == len(words)


@each_row(
    ("built", "differs"),
    [
        (report(*PLAIN), None),
        (report(failing("a")), None),
        (report(*PLAIN, baseline=NoBaseline("none")), None),
        (report(*PLAIN, baseline=baseline(PLAIN)), False),
        (report(failing("a"), baseline=baseline([failing("a")])), True),
        (report(*PLAIN, baseline=baseline([episode("a")])), True),
        (report(*PLAIN, baseline=baseline([failing("a"), episode("b")])), True),
        (
            report(episode("a", gate="advisory", **OVER), episode("b"), baseline=baseline(PLAIN)),
            True,
        ),
        (
            report(
                failing("a", gate="advisory"),
                episode("b"),
                baseline=baseline([failing("a", gate="advisory"), episode("b")]),
            ),
            False,
        ),
    ],
)
def test_a_run_differs_where_it_fails_or_something_moved(built, differs):
    assert differs_from_baseline(build_report_view(built)) is differs
