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


def kinds(built):
    return [reason.kind for reason in built.verdict.reasons]


def test_everything_gated_passed_is_a_success():
    built = report(episode("a"), episode("b"))
    assert built.verdict.conclusion == "success"
    assert kinds(built) == []


def test_zero_episodes_are_no_evidence():
    assert kinds(report()) == ["no_evidence"]


def test_nothing_read_at_all_is_no_evidence():
    assert kinds(report(sources=(), sessions=())) == ["no_evidence"]


def test_a_plain_junit_run_is_evidence_enough_without_episodes():
    tests = PlainTests(OutcomeTally(passed=3))
    built = report(tests=tests, sources=(SourceFile("junit.xml", "junit", cases=3),), sessions=())
    assert built.passed


def test_plain_tests_do_not_stand_in_for_missing_episodes():
    built = report(tests=PlainTests(OutcomeTally(passed=3)))
    assert kinds(built) == ["no_evidence"]


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


def test_a_failing_required_scenario_fails():
    built = report(episode("a"), failing("b"))
    assert [(r.kind, r.scenario_id) for r in built.verdict.reasons] == [("scenario", "b")]


def test_a_failing_advisory_scenario_only_warns():
    built = report(episode("a"), failing("b", gate="advisory"))
    assert built.passed
    assert [(w.kind, w.scenario_id) for w in built.verdict.warnings] == [("scenario", "b")]


def test_only_advisory_scenarios_that_fail_is_still_a_success_that_says_so():
    built = report(failing("b", gate="advisory"))
    assert built.passed
    assert built.verdict.warnings


def test_a_hard_budget_over_its_limit_fails_though_the_scenario_passes():
    built = report(episode(budgets={"tool_calls": {"used": 6, "limit": 4}}))
    assert kinds(built) == ["budget"]
    assert built.verdict.judgements[0].status == "passing"


def test_a_soft_budget_over_its_limit_warns():
    built = report(episode(budgets={"tool_calls": {"used": 6, "limit": 4, "hard": False}}))
    assert built.passed
    assert [w.kind for w in built.verdict.warnings] == ["budget"]


def test_a_hard_budget_that_was_not_measured_fails():
    built = report(episode(budgets={"cost_usd": 0.5}))
    assert kinds(built) == ["budget"]
    assert "not measured" in built.verdict.reasons[0].message


def test_a_hard_budget_of_an_advisory_scenario_does_not_gate():
    built = report(episode("a"), episode("b", gate="advisory", budgets={"cost_usd": 0.5}))
    assert built.passed
    assert [w.scenario_id for w in built.verdict.warnings] == ["b"]


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


def test_a_soft_suite_budget_warns():
    budgets = SuiteBudgets.model_validate({"total_tokens": {"limit": 5, "hard": False}})
    built = report(episode(), budgets=budgets)
    assert built.passed
    assert [w.kind for w in built.verdict.warnings] == ["suite_budget"]


def test_a_failing_plain_test_fails():
    tests = PlainTests(
        OutcomeTally(passed=2, failed=1), (JUnitCase("tests.test_x", "test_y", "failed"),)
    )
    assert kinds(report(episode(), tests=tests)) == ["tests"]


def test_an_errored_plain_test_fails():
    assert kinds(report(episode(), tests=PlainTests(OutcomeTally(error=1)))) == ["tests"]


def test_a_scenario_that_only_errored_was_not_judged():
    built = report(episode("a"), episode("b", outcome="error", reason="429"))
    assert [(r.kind, r.scenario_id) for r in built.verdict.reasons] == [
        ("scenario", "b"),
        ("error_budget", None),
    ]


def test_errors_have_a_budget_of_their_own():
    runs = [episode(iteration=n) for n in range(1, 10)]
    errored = episode(iteration=10, outcome="error", reason="429")
    assert kinds(report(*runs, errored)) == ["error_budget"]
    assert report(*runs, errored, policy=GatePolicy(max_error_rate=0.1)).passed


def test_an_error_in_an_advisory_scenario_does_not_count_against_the_budget():
    assert report(episode("a"), episode("b", gate="advisory", outcome="error")).passed


def test_a_required_scenario_that_was_skipped_did_not_prove_itself():
    built = report(episode("a"), episode("b", outcome="skipped", reason="no key"))
    assert kinds(built) == ["skipped"]


def test_skips_can_be_allowed_but_not_instead_of_all_evidence():
    policy = GatePolicy(allow_skipped=True)
    skipped = episode("b", outcome="skipped")
    assert report(episode("a"), skipped, policy=policy).passed
    assert kinds(report(skipped, policy=policy)) == ["no_evidence"]


def test_a_skipped_episode_owes_no_measurement():
    built = report(
        episode("a"),
        episode("b", outcome="skipped", trajectory=None, budgets={"tool_calls": 3}),
        policy=GatePolicy(allow_skipped=True),
    )
    assert built.passed


def iterations(passed, failed, **overrides):
    good = [episode(iteration=n, **overrides) for n in range(1, passed + 1)]
    return good + [
        failing(iteration=n, **overrides) for n in range(passed + 1, passed + failed + 1)
    ]


def test_a_pass_rate_below_what_is_required_fails():
    assert kinds(report(*iterations(4, 1))) == ["scenario"]
    assert report(*iterations(4, 1), policy=GatePolicy(min_pass_rate=0.8)).passed


def test_a_scenario_s_own_pass_rate_tolerates_as_well_as_tightens():
    assert report(*iterations(3, 2, min_pass_rate=0.6)).passed
    strict = report(*iterations(4, 1, min_pass_rate=1.0), policy=GatePolicy(min_pass_rate=0.5))
    assert kinds(strict) == ["scenario"]


def test_errors_count_neither_for_nor_against_the_pass_rate():
    runs = [episode(iteration=1), episode(iteration=2, outcome="error")]
    built = report(*runs, policy=GatePolicy(max_error_rate=1.0))
    assert built.passed
    assert built.summary.scenarios[0].tally.pass_rate == 1.0


@given(st.lists(st.sampled_from(["passed", "failed", "error", "skipped"]), max_size=8))
def test_success_always_has_evidence_and_no_failure(outcomes):
    runs = [episode(f"s{n}", outcome=outcome) for n, outcome in enumerate(outcomes)]
    built = report(*runs)
    assert built.passed == (bool(outcomes) and set(outcomes) == {"passed"})


def test_a_scenario_can_ask_for_a_number_of_passes():
    assert report(*iterations(2, 3, min_passes=2, min_pass_rate=0.0)).passed
    assert kinds(report(*iterations(2, 3, min_passes=3, min_pass_rate=0.0))) == ["scenario"]
    assert report(*iterations(2, 3, min_passes=2)).passed


def test_a_lower_rate_of_one_test_does_not_excuse_the_others_of_its_scenario():
    lax = episode(nodeid="b", min_pass_rate=0.0)
    assert kinds(report(failing(nodeid="a"), lax, failing(nodeid="c"))) == ["scenario"]


def test_a_retry_that_skips_or_errs_erases_no_failure():
    for outcome in ("skipped", "error"):
        built = report(failing(attempt=1), episode(attempt=2, outcome=outcome), episode("b"))
        assert "scenario" in kinds(built)


def test_rates_are_compared_as_they_were_written():
    runs = [episode(iteration=n) for n in range(1, 72)]
    errors = [episode(iteration=n, outcome="error") for n in range(72, 101)]
    assert report(*runs, *errors, policy=GatePolicy(max_error_rate=0.29)).passed
    assert report(*iterations(29, 71), policy=GatePolicy(min_pass_rate=0.29)).passed


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


def test_an_evaluation_whose_marker_says_gate_gates():
    built = report(evaluated("a", False, gate="required"), episode())
    assert kinds(built) == ["scenario"]


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


SUITE_RATE = GatePolicy(suite_min_pass_rate=0.75)


def mixed(passed, failed, **overrides):
    """Return as many passing and failing scenarios of one iteration each."""
    good = [episode(f"good-{n}", **overrides) for n in range(passed)]
    return good + [failing(f"bad-{n}", **overrides) for n in range(failed)]


def test_a_suite_s_required_rate_tolerates_failing_scenarios():
    built = report(*mixed(3, 1), policy=SUITE_RATE)
    assert built.passed
    assert [(w.kind, w.scenario_id) for w in built.verdict.warnings] == [("scenario", "bad-0")]
    assert [j.status for j in built.verdict.judgements] == ["failing", *["passing"] * 3]


def test_a_suite_below_its_required_rate_fails_with_one_reason():
    built = report(*mixed(2, 1), policy=SUITE_RATE)
    (reason,) = built.verdict.reasons
    assert describe_reason(reason) == (
        "2 of 3 iterations of the required scenarios pass, 75% required"
    )


def test_a_scenario_with_its_own_requirement_fails_the_gate_beside_a_suite_s_rate():
    own = failing("own", min_pass_rate=0.5)
    assert kinds(report(*mixed(9, 0), own, policy=SUITE_RATE)) == ["scenario"]
    passes = failing("own", min_passes=1)
    assert kinds(report(*mixed(9, 0), passes, policy=SUITE_RATE)) == ["scenario"]


def test_own_requirements_advisory_scenarios_and_evaluations_do_not_count_in_a_suite_s_rate():
    others = [
        *mixed(0, 3, gate="advisory"),
        evaluated("measured", False, gate="advisory", outcome="failed"),
        *[episode("own", iteration=n, min_pass_rate=0.1) for n in range(1, 5)],
    ]
    policy = GatePolicy(suite_min_pass_rate=0.6)
    assert kinds(report(episode("a"), failing("b"), *others, policy=policy)) == ["suite_pass_rate"]


def test_a_required_evaluation_fails_the_gate_beside_a_suite_s_rate():
    required = evaluated("measured", False, gate="required", outcome="failed")
    assert kinds(report(*mixed(9, 0), required, policy=SUITE_RATE)) == ["scenario"]


def test_errors_skips_and_budgets_gate_beside_a_suite_s_rate():
    errored = episode("e", outcome="error", reason="429")
    assert kinds(report(*mixed(9, 0), errored, policy=SUITE_RATE)) == ["scenario", "error_budget"]
    skipped = episode("e", outcome="skipped")
    assert kinds(report(*mixed(9, 0), skipped, policy=SUITE_RATE)) == ["skipped"]
    over = episode("e", budgets={"tool_calls": {"used": 6, "limit": 4}})
    assert kinds(report(*mixed(9, 0), over, policy=SUITE_RATE)) == ["budget"]
