"""The fail-closed table of the design, row by row, and the policy around it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.findings import SourceFile
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.render.sentences import describe_reason
from tests.builders import episode, evaluated, failing, finding, report
from tests.tables import each_row
from tests.unit.gate.test_verdicts import refuse_a_claim


def told(reasons):
    return [(reason.kind, reason.scenario_id) for reason in reasons]


def kinds(built):
    return [reason.kind for reason in built.verdict.reasons]


def iterations(passed, failed, **overrides):
    good = [episode(iteration=n, **overrides) for n in range(1, passed + 1)]
    return good + [
        failing(iteration=n, **overrides) for n in range(passed + 1, passed + failed + 1)
    ]


def mixed(passed, failed, **overrides):
    """Return as many passing and failing scenarios of one iteration each."""
    good = [episode(f"good-{n}", **overrides) for n in range(passed)]
    return good + [failing(f"bad-{n}", **overrides) for n in range(failed)]


def erring(passed, errors):
    runs = [episode(iteration=n) for n in range(passed)]
    return runs + [episode(iteration=passed + n, outcome="error") for n in range(errors)]


def over(hard=True, **fields):
    return episode("b", budgets={"tool_calls": {"used": 6, "limit": 4, "hard": hard}}, **fields)


A = episode("a")
ADVISORY = {"gate": "advisory"}
SKIPPED = episode("b", outcome="skipped", reason="no key")
ERROR = episode("b", outcome="error", reason="429")
HALF_JUDGED = [episode(iteration=1), episode(iteration=2, outcome="error")]
FAILED_TEST = PlainTests(OutcomeTally(2, 1), (JUnitCase("tests.test_x", "test_y", "failed"),))
JUNIT = {"sources": (SourceFile("junit.xml", "junit", cases=3),), "sessions": ()}
SOFT_TOKENS = SuiteBudgets.model_validate({"total_tokens": {"limit": 5, "hard": False}})
SUITE_RATE = GatePolicy(suite_min_pass_rate=0.75)
LAX_SKIPS = GatePolicy(allow_skipped=True)
OWES_NOTHING = episode("b", outcome="skipped", trajectory=None, budgets={"tool_calls": 3})

VERDICTS = {
    # what is: (report, (kind, scenario) of its reasons, and of its warnings)
    "everything gated passed": (report(A, episode("b")), [], []),
    "zero episodes": (report(), [("no_evidence", None)], []),
    "nothing read at all": (report(sources=(), sessions=()), [("no_evidence", None)], []),
    "a plain JUnit run": (report(tests=PlainTests(OutcomeTally(3)), **JUNIT), [], []),
    "plain tests for missing episodes": (
        report(tests=PlainTests(OutcomeTally(3))), [("no_evidence", None)], [],
    ),
    "a required scenario fails": (report(A, failing("b")), [("scenario", "b")], []),
    "an advisory one fails": (report(A, failing("b", **ADVISORY)), [], [("scenario", "b")]),
    "all are advisory": (report(failing("b", **ADVISORY)), [], [("scenario", "b")]),
    "over a hard budget": (report(over()), [("budget", "b")], []),
    "over a soft budget": (report(over(hard=False)), [], [("budget", "b")]),
    "an advisory one over budget": (report(A, over(**ADVISORY)), [], [("budget", "b")]),
    "over a soft budget of the suite": (
        report(episode(), budgets=SOFT_TOKENS), [], [("suite_budget", None)],
    ),
    "a plain test fails": (report(A, tests=FAILED_TEST), [("tests", None)], []),
    "a plain test errs": (report(A, tests=PlainTests(OutcomeTally(error=1))), [("tests", None)], []),
    "a scenario only errs": (report(A, ERROR), [("scenario", "b"), ("error_budget", None)], []),
    "an iteration errs": (report(*erring(9, 1)), [("error_budget", None)], []),
    "errors within their budget": (
        report(*erring(9, 1), policy=GatePolicy(max_error_rate=0.1)), [], [],
    ),
    "an advisory one errs": (
        report(A, episode("b", outcome="error", **ADVISORY)), [], [("scenario", "b")],
    ),
    "a required one is skipped": (report(A, SKIPPED), [("skipped", "b")], []),
    "a skip is allowed": (report(A, SKIPPED, policy=LAX_SKIPS), [], []),
    "nothing but allowed skips": (
        report(SKIPPED, policy=LAX_SKIPS), [("no_evidence", None)], [],
    ),
    "a skipped one owes no measurement": (
        report(A, OWES_NOTHING, policy=LAX_SKIPS), [], [],
    ),
    "below the pass rate": (report(*iterations(4, 1)), [("scenario", "refund")], []),
    "at the pass rate": (report(*iterations(4, 1), policy=GatePolicy(min_pass_rate=0.8)), [], []),
    "at its own rate": (report(*iterations(3, 2, min_pass_rate=0.6)), [], []),
    "below its own rate": (
        report(*iterations(4, 1, min_pass_rate=1.0), policy=GatePolicy(min_pass_rate=0.5)),
        [("scenario", "refund")], [],
    ),
    "rates are compared as they were written": (
        report(*iterations(29, 71), policy=GatePolicy(min_pass_rate=0.29)), [], [],
    ),
    "so are shares of errors": (
        report(*erring(71, 29), policy=GatePolicy(max_error_rate=0.29)), [], [],
    ),
    "errors do not count in the pass rate": (
        report(*HALF_JUDGED, policy=GatePolicy(max_error_rate=1.0)), [], [],
    ),
    "enough passes": (report(*iterations(2, 3, min_passes=2)), [], []),
    "enough passes for a rate of zero": (
        report(*iterations(2, 3, min_passes=2, min_pass_rate=0.0)), [], [],
    ),
    "too few passes for a rate of zero": (
        report(*iterations(2, 3, min_passes=3, min_pass_rate=0.0)), [("scenario", "refund")], [],
    ),
    "a lower rate of one of its tests": (
        report(failing(nodeid="a"), episode(nodeid="b", min_pass_rate=0.0), failing(nodeid="c")),
        [("scenario", "refund")], [],
    ),
    "a retry that skips": (
        report(failing(attempt=1), episode(attempt=2, outcome="skipped"), A),
        [("scenario", "refund")], [],
    ),
    "a retry that errs": (
        report(failing(attempt=1), episode(attempt=2, outcome="error"), A),
        [("scenario", "refund")], [],
    ),
    "a marker lets an evaluation gate": (
        report(evaluated("a", False, gate="required"), episode()), [("scenario", "a")], [],
    ),
    "the suite reaches its rate": (
        report(*mixed(3, 1), policy=SUITE_RATE), [], [("scenario", "bad-0")],
    ),
    "a requirement of its own beside a suite's rate": (
        report(*mixed(9, 0), failing("own", min_pass_rate=0.5), policy=SUITE_RATE),
        [("scenario", "own")], [],
    ),
    "passes of its own beside a suite's rate": (
        report(*mixed(9, 0), failing("own", min_passes=1), policy=SUITE_RATE),
        [("scenario", "own")], [],
    ),
    "a required evaluation beside a suite's rate": (
        report(*mixed(9, 0), evaluated("x", False, gate="required"), policy=SUITE_RATE),
        [("scenario", "x")], [],
    ),
    "an error beside a suite's rate": (
        report(*mixed(9, 0), ERROR, policy=SUITE_RATE),
        [("scenario", "b"), ("error_budget", None)], [],
    ),
    "a skip beside a suite's rate": (
        report(*mixed(9, 0), SKIPPED, policy=SUITE_RATE), [("skipped", "b")], [],
    ),
    "a budget beside a suite's rate": (
        report(*mixed(9, 0), over(), policy=SUITE_RATE), [("budget", "b")], [],
    ),
}  # fmt: skip


POLICY_ALONE = {"error_budget", "skipped"}
"""Reasons of which a verdict that claims success does not show that they were there."""


@each_row("what", VERDICTS)
def test_the_verdict_of(what):
    built, reasons, warnings = VERDICTS[what]
    assert told(built.verdict.reasons) == reasons
    assert told(built.verdict.warnings) == warnings
    assert built.passed is not bool(reasons)
    assert bool(refuse_a_claim(built)) is bool({kind for kind, _ in reasons} - POLICY_ALONE)


@each_row(
    "kind",
    [
        "no_results",
        "unreadable_file",
        "declared_counts_differ",
        "disagreement",
        "collection_error",
        "interrupted",
        "duplicate",
    ],
)
def test_a_blocking_finding_fails_an_otherwise_green_run(kind):
    built = report(episode(), findings=(finding(kind),))
    assert built.verdict.conclusion == "failure"
    assert kinds(built) == ["finding"]
    assert "junit.xml" in describe_reason(built.verdict.reasons[0])
    assert refuse_a_claim(built)


@given(st.lists(st.sampled_from(["passed", "failed", "error", "skipped"]), max_size=8))
def test_success_always_has_evidence_and_no_failure(outcomes):
    runs = [episode(f"s{n}", outcome=outcome) for n, outcome in enumerate(outcomes)]
    built = report(*runs)
    assert built.passed == (bool(outcomes) and set(outcomes) == {"passed"})
