"""The verdict in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.findings import StoppedRun
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.render.headline import render_headline
from tests.builders import COST_STOP, episode, evaluated, failing, finding, report
from tests.render_reports import HOSTILE, everything_wrong, hostile, no_results

NO_EPISODES = {"sources": (), "sessions": ()}
OVER = {"tool_calls": {"used": 5, "limit": 4}}
SOFT = {"tool_calls": {"used": 5, "limit": 4, "hard": False}}
CASES = (JUnitCase("c", "a", "failed"), JUnitCase("c", "b", "error"))


@pytest.mark.parametrize(
    ("built", "sentence"),
    [
        (lambda: report(episode()), "passed: 1 of 1 required scenario, 1 episode"),
        (
            lambda: report(*(episode(f"s{n % 12}", iteration=n) for n in range(60))),
            "passed: 12 of 12 required scenarios, 60 episodes",
        ),
        (
            lambda: report(failing("a"), *(episode(f"s{n}", budgets=OVER if n == 1 else {}) for n in range(11))),
            "failed: 1 of 12 required scenarios fails, 1 budget exceeded",
        ),
        (
            lambda: report(episode("a"), failing("b"), policy=GatePolicy(suite_min_pass_rate=0.5)),
            "passed: 1 of 2 required scenarios, 1 of 2 iterations pass (50.0 % required), 2 episodes",
        ),
        (
            lambda: report(episode("a"), failing("b"), failing("c", min_passes=1), policy=GatePolicy(suite_min_pass_rate=0.9)),
            "failed: 1 of 3 required scenarios fails, 1 of 2 iterations pass (90.0 % required)",
        ),
        (
            lambda: report(failing("a"), failing("b"), episode("c", budgets={"cost_usd": 1})),
            "failed: 2 of 3 required scenarios fail, 1 budget not measured",
        ),
        (
            lambda: report(episode("a", outcome="error"), episode("b", outcome="skipped"), episode("c")),
            "failed: 1 of 3 required scenarios was not judged, 1 was skipped, 1 episode ended in an error",
        ),
        (
            lambda: report(*(episode("a", iteration=n, outcome="error" if n < 3 else "passed") for n in range(1, 9))),
            "failed: 2 episodes ended in an error",
        ),
        (no_results, "failed: no results were found"),
        (report, "failed: no episode was found"),
        (
            lambda: report(episode(outcome="skipped"), policy=GatePolicy(allow_skipped=True)),
            "failed: none of 1 episode was judged",
        ),
        (
            lambda: report(episode(), tests=PlainTests(OutcomeTally(117, 3), CASES)),
            "failed: 3 of 120 tests failed",
        ),
        (
            lambda: report(**NO_EPISODES, tests=PlainTests(OutcomeTally(119, 0, 1), CASES)),
            "failed: 1 of 120 tests ended in an error",
        ),
        (
            lambda: report(**NO_EPISODES, tests=PlainTests(OutcomeTally(120))),
            "passed: 120 of 120 tests passed",
        ),
        (
            lambda: report(**NO_EPISODES, tests=PlainTests(OutcomeTally(118, 0, 0, 2))),
            "passed: 118 of 120 tests passed (2 skipped)",
        ),
        (
            lambda: report(failing("a", gate="advisory"), failing("b", gate="advisory")),
            "passed: 2 episodes, only advisory scenarios failed (2)",
        ),
        (
            lambda: report(episode("a", budgets=SOFT)),
            "passed: 1 of 1 required scenario, 1 episode, 1 soft budget exceeded",
        ),
        (
            lambda: report(episode(), budgets=SuiteBudgets.model_validate({"total_tokens": 5})),
            "failed: 1 suite budget not measured",
        ),
        (
            lambda: report(evaluated("a", True), evaluated("b", False, True), evaluated("c", outcome="error")),
            "passed: 1 episode ended in an error, 1 of 3 evaluation conversations passed (average score 0.75)",
        ),
        (
            lambda: report(episode(), evaluated("a", False), failing("b", gate="advisory")),
            "passed: 1 of 1 required scenario, 2 episodes, 0 of 1 evaluation conversation passed (average score 0.00), only advisory scenarios failed (1)",
        ),
        (
            lambda: report(evaluated("a", False), episode(), policy=GatePolicy(eval_min_pass_rate=0.8)),
            "failed: 0 of 1 evaluation conversation passed, 80.0 % required",
        ),
        (
            lambda: report(*(evaluated("a", n > 0, True, iteration=n) for n in range(251)), policy=GatePolicy(eval_min_score=0.999)),
            "failed: the evaluations' average score is 0.998, 0.999 required",
        ),
        (
            lambda: report(evaluated("a", outcome="error"), episode(), policy=GatePolicy(eval_min_score=0.5)),
            "failed: no evaluation conversation was judged",
        ),
        (
            lambda: report(evaluated("a"), evaluated("b", outcome="error"), policy=GatePolicy(eval_min_score=0.5)),
            "failed: 1 evaluation conversation ended in an error",
        ),
        (
            lambda: report(episode(), findings=(finding("interrupted"), finding("unreadable_file"), finding("unreadable_file", where="b"))),
            "failed: the run was interrupted (1 episode judged), 2 result files cannot be read",
        ),
        (
            lambda: report(episode(), findings=(finding("stopped", message=StoppedRun(COST_STOP, 1234, 6)),)),
            "failed: a suite budget stopped the run (6 of 1,234 episodes did not run)",
        ),
        (
            lambda: report(episode(), findings=(finding("stopped", message=StoppedRun(COST_STOP, None, 0)),)),
            "failed: a suite budget stopped the run",
        ),
        (
            lambda: report(episode(), findings=(finding("stopped"), finding("stopped", where="b"))),
            "failed: suite budgets stopped 2 runs",
        ),
        (
            lambda: report(episode(), findings=(finding("repaired_file", blocking=False),)),
            "passed: 1 of 1 required scenario, 1 episode, 1 result file was repaired",
        ),
    ],
)  # fmt: skip
def test_sentence(built, sentence):
    assert render_headline(built()) == f"Agent evals {sentence}"


def test_every_kind_of_reason_is_named():
    wrong = everything_wrong()
    assert {reason.kind for reason in wrong.verdict.reasons} == {
        "finding", "scenario", "error_budget", "skipped", "tests", "budget", "suite_budget",
    }  # fmt: skip
    for part in (
        "interrupted", "suite budget stopped the run", "collection error", "cannot be read", "disagreement", "misstates", "duplicate",
        "repaired", "1 of 4 required scenarios fails", "1 was not judged", "1 was skipped",
        "1 episode ended in an error", "1 of 3 tests failed", "1 of 3 tests ended in an error",
        "2 budgets exceeded", "1 budget not measured", "1 suite budget exceeded", "1 suite budget not measured",
    ):  # fmt: skip
        assert part in render_headline(wrong)
    assert len(render_headline(wrong)) < 600


def test_reasons_without_a_figure_of_their_own_still_show():
    forged = report(episode())
    verdict = replace(everything_wrong().verdict, judgements=forged.verdict.judgements)
    assert render_headline(replace(forged, verdict=verdict)).startswith("Agent evals failed: ")


def test_no_text_of_others_is_in_it():
    assert render_headline(hostile("x")) == render_headline(hostile(HOSTILE))
