"""The fail-closed table of the design, row by row, and the policy around it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.analysis.loaded_results import JUnitCase, OutcomeTally, PlainTests
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.findings import SourceFile
from ci_agent_eval.contract.results import RemovedScenario, Session
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.render.sentences import describe_reason
from tests.builders import episode, evaluated, failing, finding, report
from tests.tables import each_row


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


@each_row("what", VERDICTS)
def test_the_verdict_of(what):
    built, reasons, warnings = VERDICTS[what]
    assert told(built.verdict.reasons) == reasons
    assert told(built.verdict.warnings) == warnings
    assert built.passed is not bool(reasons)


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


def test_a_finding_that_does_not_block_is_a_warning():
    built = report(episode(), findings=(finding("repaired_file", blocking=False),))
    assert built.passed
    assert [warning.kind for warning in built.verdict.warnings] == ["finding"]


def test_a_hard_budget_that_was_not_measured_fails():
    built = report(episode(budgets={"cost_usd": 0.5}))
    assert kinds(built) == ["budget"]
    assert "not measured" in built.verdict.reasons[0].message


@each_row(
    ("budgets", "reason"),
    [
        ({"total_wall_time_s": 2}, "total_wall_time_s: 2.5 over limit 2"),
        ({"total_cost_usd": 1}, "total_cost_usd: not measured, limit 1"),
    ],
)
def test_suite_budgets_gate(budgets, reason):
    built = report(episode(), budgets=SuiteBudgets.model_validate(budgets))
    assert [(r.kind, r.message) for r in built.verdict.reasons] == [("suite_budget", reason)]


@given(st.lists(st.sampled_from(["passed", "failed", "error", "skipped"]), max_size=8))
def test_success_always_has_evidence_and_no_failure(outcomes):
    runs = [episode(f"s{n}", outcome=outcome) for n, outcome in enumerate(outcomes)]
    built = report(*runs)
    assert built.passed == (bool(outcomes) and set(outcomes) == {"passed"})


def test_passes_tolerate_where_the_policy_would_not_and_say_what_is_missing():
    runs = iterations(3, 2, min_passes=4)
    (reason,) = report(*runs, policy=GatePolicy(min_pass_rate=0.5)).verdict.reasons
    assert reason.message == "3 of 5 iterations pass, 4 required"
    assert report(*iterations(4, 1, min_passes=4), policy=GatePolicy(min_pass_rate=1.0)).passed


def test_two_agents_at_one_scenario_are_judged_apart():
    built = report(episode(agent="a"), failing(agent="b"))
    assert [(j.agent, j.status) for j in built.verdict.judgements] == [
        ("a", "passing"),
        ("b", "failing"),
    ]
    assert [(r.scenario_id, r.agent) for r in built.verdict.reasons] == [("refund", "b")]


def measured(passed, failed, errored=0, skipped=0):
    runs = [evaluated("talk", True, iteration=n) for n in range(passed)]
    runs += [evaluated("talk", True, False, iteration=passed + n) for n in range(failed)]
    for number, outcome in enumerate(["error"] * errored + ["skipped"] * skipped):
        runs.append(evaluated("talk", iteration=100 + number, outcome=outcome))
    return runs


def test_evaluations_only_inform_without_a_threshold():
    built = report(*measured(0, 3, errored=1))
    assert built.passed
    assert [(w.kind, w.message) for w in built.verdict.warnings] == [
        ("evaluation", "0 of 4 conversations passed, average score 0.5")
    ]
    assert built.summary.evaluations.conversations == 4


def test_evaluations_that_all_errored_are_no_evidence():
    assert kinds(report(*measured(0, 0, errored=2))) == ["no_evidence"]


@each_row(
    ("runs", "policy", "message"),
    [
        (measured(4, 1), {"eval_min_pass_rate": 0.8}, None),
        (measured(3, 1), {"eval_min_pass_rate": 0.8},
         "3 of 4 evaluation conversations passed, 80% required"),
        (measured(4, 0, errored=1), {"eval_min_pass_rate": 0.8}, None),
        (measured(3, 0, errored=1), {"eval_min_pass_rate": 0.8},
         "3 of 4 evaluation conversations passed, 80% required"),
        (measured(3, 0, skipped=2), {"eval_min_pass_rate": 1.0}, None),
        (measured(1, 1), {"eval_min_score": 0.75}, None),
        (measured(1, 2), {"eval_min_score": 0.75},
         "the evaluations' average score is 0.666667, 0.75 required"),
        (measured(3, 0, errored=1), {"eval_min_score": 0.5},
         "1 of 4 evaluation conversations have no score: they ended in an error, 0.0% allowed"),
        (measured(3, 0, errored=1), {"eval_min_score": 0.5, "max_error_rate": 0.25}, None),
        (measured(0, 3), {"eval_min_pass_rate": 0.0, "eval_min_score": 0.0}, None),
    ],
)  # fmt: skip
def test_evaluations_are_held_against_the_suite_s_thresholds(runs, policy, message):
    built = report(*runs, episode("strict"), policy=GatePolicy(**policy))
    found = [(reason.kind, reason.message) for reason in built.verdict.reasons]
    assert found == ([] if message is None else [("evaluation", message)])


@each_row("policy", [{"eval_min_pass_rate": 0.0}, {"eval_min_score": 0.0}])
@each_row("runs", [[], measured(0, 0, errored=1, skipped=1)])
def test_a_threshold_without_a_measurement_is_not_reached(runs, policy):
    built = report(*runs, episode("strict"), policy=GatePolicy(**policy))
    (reason,) = built.verdict.reasons
    assert reason.message.startswith("no evaluation conversation was judged (")


def five(*outcomes, **overrides):
    """Iterations of one test that declares five."""
    return [
        episode(iteration=number, iterations=5, outcome=outcome, **overrides)
        for number, outcome in enumerate(outcomes, start=1)
    ]


def test_a_scenario_that_skipped_iterations_is_incomplete():
    built = report(*five("passed", *["skipped"] * 4))
    assert built.verdict.judgements[0].status == "incomplete"
    (reason,) = built.verdict.reasons
    assert (reason.kind, reason.scenario_id) == ("incomplete", "refund")
    assert reason.message == (
        "4 of 5 iterations were not judged (4 skipped); run them all, or set allow_skipped"
    )


def test_iterations_that_left_no_episode_are_missed():
    (reason,) = report(*five("passed", "skipped")).verdict.reasons
    assert reason.message.startswith("4 of 5 iterations were not judged (1 skipped, 3 not run)")


def test_skipped_iterations_that_are_allowed_warn():
    built = report(*five("passed", *["skipped"] * 4), policy=GatePolicy(allow_skipped=True))
    assert built.passed
    (warning,) = built.verdict.warnings
    assert warning.message == "4 of 5 iterations were not judged (4 skipped)"


def test_skipped_iterations_of_an_advisory_scenario_warn():
    built = report(episode("a"), *five("passed", *["skipped"] * 4, gate="advisory"))
    assert built.passed
    assert [warning.kind for warning in built.verdict.warnings] == ["incomplete"]


def test_iterations_that_ended_in_an_error_are_for_the_error_rate():
    built = report(*five("passed", *["error"] * 4), policy=GatePolicy(max_error_rate=0.8))
    assert built.passed
    assert built.verdict.judgements[0].status == "passing"


def test_a_retry_of_an_iteration_is_no_iteration_more():
    again = [episode(iteration=1, iterations=5, attempt=2)]
    built = report(*five("failed", *["passed"] * 3), *again)
    (reason,) = built.verdict.reasons
    assert reason.message.startswith("1 of 5 iterations were not judged (1 not run)")


def test_each_test_of_a_scenario_declares_its_own_iterations():
    other = [e.model_copy(update={"nodeid": "t.py::other"}) for e in five(*["passed"] * 4)]
    built = report(*five(*["passed"] * 5), *other, episode(nodeid="t.py::once"))
    (reason,) = built.verdict.reasons
    assert reason.message.startswith("1 of 11 iterations were not judged (1 not run)")


def test_a_test_that_was_collected_twice_has_no_iteration_too_few():
    twice = [episode(iteration=number, iterations=5) for number in range(1, 11)]
    assert report(*twice).passed


def test_a_failing_scenario_stays_failing_whatever_it_skipped():
    built = report(*five("failed", *["skipped"] * 4))
    assert [reason.kind for reason in built.verdict.reasons] == ["scenario"]


@each_row("kind", ["interrupted", "stopped", "shards", "unreadable_file"])
def test_a_run_that_was_cut_short_says_so_once(kind):
    built = report(*five("passed", "passed"), findings=(finding(kind),))
    assert kinds(built) == ["finding"]


def session(**overrides):
    return {"sessions": (Session(state="finished", **overrides),)}


def test_iterations_that_the_command_line_left_out_are_not_missed():
    assert report(*five("passed"), **session(restrictions=("-k 1-of-5",))).passed


def test_iterations_that_a_hook_took_from_a_restricted_run_are_missed():
    removed = RemovedScenario(scenario_id="refund", iterations=2, by="conftest.py")
    left = session(restrictions=("-k refund",), removed=(removed,))
    (reason,) = report(*five(*["passed"] * 3), **left).verdict.reasons
    assert reason.message.startswith("2 of 5 iterations were not judged (2 not run)")


def lacking(**fields):
    return episode(**{"evidence": "required", "trajectory": None, **fields})


def test_no_share_of_errors_takes_an_episode_without_evidence_in():
    lenient = GatePolicy(max_error_rate=1.0)
    built = report(episode(), lacking(iteration=2), policy=lenient)
    (reason,) = built.verdict.reasons
    assert (reason.kind, reason.scenario_id) == ("evidence", "refund")
    assert reason.message == (
        "no evidence in 1 of 2 iterations: no completed turn or tool call and no assertion"
    )
    assert report(episode(), episode(iteration=2, outcome="error"), policy=lenient).passed


def test_an_episode_that_needs_no_evidence_passes_and_is_named():
    built = report(lacking(evidence="none"))
    assert built.passed
    (warning,) = built.verdict.warnings
    assert (warning.kind, warning.scenario_id) == ("evidence", "refund")


def test_a_suite_below_its_required_rate_fails_with_one_reason():
    built = report(*mixed(2, 1), policy=SUITE_RATE)
    (reason,) = built.verdict.reasons
    assert describe_reason(reason) == (
        "2 of 3 iterations of the required scenarios pass, 75% required"
    )


def test_own_requirements_advisory_scenarios_and_evaluations_do_not_count_in_a_suite_s_rate():
    others = [
        *mixed(0, 3, gate="advisory"),
        evaluated("measured", False, gate="advisory", outcome="failed"),
        *[episode("own", iteration=n, min_pass_rate=0.1) for n in range(1, 5)],
    ]
    policy = GatePolicy(suite_min_pass_rate=0.6)
    assert kinds(report(episode("a"), failing("b"), *others, policy=policy)) == ["suite_pass_rate"]
