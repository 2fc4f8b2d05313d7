"""What comparing adds to the gate: its reasons, its warnings, and what it leaves alone."""

from __future__ import annotations

import json

import pytest

from ci_agent_eval.analysis.comparison.findings import is_certain_increase
from ci_agent_eval.analysis.comparison.model import AllowedIncreases, MetricChange, NoBaseline
from ci_agent_eval.errors import InputError
from ci_agent_eval.gate import GatePolicy, is_passing
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from ci_agent_eval.render.sentences import describe_reason
from tests.builders import baseline, episode, failing, in_quarantine, report, turn
from tests.tables import each_row

UNMEASURED = (
    "is not measured on both sides in 2 of 2 scenarios, so that its increase cannot be told"
)
BY_CHANCE = "which so few iterations cannot tell from chance"
COPIED = "have the very results of a later run and do not count again"
LAX = {"min_pass_rate": 0.0}


def run(passed=1, failed=0, scenario="refund", **fields):
    made = [episode(scenario, iteration=i + 1, **fields) for i in range(passed)]
    return made + [failing(scenario, iteration=passed + i + 1, **fields) for i in range(failed)]


def costing(cost, count=2, latency=100, iterations=5):
    turns = [turn(cost_usd=cost, latency_ms=latency)]
    fields = {"trajectory": {"turns": turns}}
    return [e for n in range(count) for e in run(iterations, scenario=f"s{n}", **fields)]


def told(found):
    return [(reason.kind, describe_reason(reason)) for reason in found]


def test_no_baseline_is_said_with_its_reason_and_does_not_fail():
    built = report(*run(), baseline=NoBaseline("no file is at evals/base"))
    assert built.passed
    assert told(built.verdict.warnings) == [("baseline", "no baseline: no file is at evals/base")]


def test_a_regression_fails_although_the_scenario_reaches_its_rate():
    built = report(*run(10, 10, **LAX), baseline=baseline(run(20, **LAX)))
    assert told(built.verdict.reasons) == [
        ("regression", "passes less often: 10 of 20 now, 20 of 20 before (adjusted p < 0.001)")
    ]
    assert (built.verdict.reasons[0].scenario_id, built.passed) == ("refund", False)


def test_too_few_iterations_to_tell_warn_and_say_how_many_would_do():
    built = report(*run(4, 1, **LAX), baseline=baseline(run(50, **LAX)))
    assert built.passed
    ((kind, message),) = told(built.verdict.warnings)
    assert kind == "undecided"
    assert message.startswith("not enough iterations to tell: 4 of 5 now, 50 of 50 before; ")
    assert message.endswith("with 37 or more such a drop shows 4 times in 5")


def test_a_baseline_of_too_few_iterations_is_said():
    built = report(*run(2, 3, **LAX), baseline=baseline(run(3, **LAX)))
    (reason,) = built.verdict.warnings
    assert reason.message.endswith(
        "the baseline needs about 6 iterations; let more runs of the base branch accumulate"
    )


def test_what_fails_by_itself_needs_no_doubt_beside_it():
    built = report(*run(0, 1), baseline=baseline(run(3)))
    assert [reason.kind for reason in built.verdict.reasons] == ["scenario"]


@each_row("now", [run(10, 10, **LAX), run(4, 1, **LAX)])
def test_both_may_only_warn(now):
    built = report(*now, baseline=baseline(run(50, **LAX)), policy=GatePolicy(regressions="warn"))
    assert built.passed
    assert len(built.verdict.warnings) == 1


@each_row("now", [run(10, 10, **LAX), run(4, 1, **LAX)])
def test_advisory_scenarios_only_warn(now):
    advisory = [one.model_copy(update={"gate": "advisory"}) for one in now]
    built = report(*advisory, baseline=baseline(run(50, gate="advisory")))
    assert built.passed
    assert {warning.kind for warning in built.verdict.warnings} & {"regression", "undecided"}


def test_a_vanished_required_scenario_fails_whatever_the_policy():
    built = report(
        *run(),
        baseline=baseline([*run(), *run(scenario="gone")]),
        policy=GatePolicy(regressions="warn"),
    )
    assert [(r.kind, r.scenario_id) for r in built.verdict.reasons] == [("vanished", "gone")]


def test_a_vanished_advisory_scenario_warns():
    gone = run(scenario="gone", gate="advisory")
    built = report(*run(), baseline=baseline([*run(), *gone]))
    assert built.passed
    assert [w.kind for w in built.verdict.warnings] == ["vanished"]


@each_row(
    ("now", "before", "message"),
    [
        (run(10, gate="advisory"), run(10),
         "it is advisory now, and 100% of its iterations had to pass in the baseline"),
        (run(10, min_pass_rate=0.1), run(10, min_pass_rate=0.9),
         "10% of its iterations must pass now, 90% in the baseline"),
        (run(10, min_pass_rate=0.1), run(10),
         "10% of its iterations must pass now, 100% in the baseline"),
        (run(10, min_passes=2), run(10, min_passes=9),
         "20% of its iterations must pass now, 90% in the baseline"),
        (run(20, min_passes=9), run(10, min_passes=9),
         "45% of its iterations must pass now, 90% in the baseline"),
        (run(10, scenario="tone", was=["refund"], gate="advisory"), run(10),
         "it is advisory now, and 100% of its iterations had to pass in the baseline"),
        (run(10, model="b", gate="advisory"), run(10, model="a"),
         "it is advisory now, and 100% of its iterations had to pass in the baseline"),
    ],
)  # fmt: skip
def test_what_gated_must_not_stop_gating_unsaid(now, before, message):
    built = report(*now, *run(scenario="other"), baseline=baseline(before))
    (reason,) = built.verdict.reasons
    advice = "put it back, or acknowledge it where this is meant"
    assert (reason.kind, reason.message) == ("downgraded", f"{message}; {advice}")
    assert parse_verdict(render_verdict(built)) == built


@each_row(
    ("now", "before"),
    [
        (run(10), run(10, min_pass_rate=0.9)),
        (run(10), run(10, gate="advisory", min_pass_rate=0.5)),
        (run(10, gate="advisory"), run(10, gate="advisory")),
        (run(10, min_passes=9), run(10, min_pass_rate=0.9)),
    ],
)
def test_what_demands_as_much_or_never_gated_is_no_downgrade(now, before):
    built = report(*now, *run(scenario="other"), baseline=baseline(before))
    assert (built.passed, told(built.verdict.warnings)) == (True, [])


def test_only_the_latest_run_says_what_was_required():
    built = report(
        *run(gate="advisory"), *run(scenario="b"), baseline=baseline(run(gate="advisory"), run())
    )
    assert built.passed


def test_a_quarantine_is_no_downgrade_and_hides_none():
    held = (in_quarantine(),)
    kept = report(*run(10), *run(scenario="b"), baseline=baseline(run(10)), quarantine=held)
    assert kept.passed
    lowered = run(10, gate="advisory")
    hidden = report(*lowered, *run(scenario="b"), baseline=baseline(run(10)), quarantine=held)
    assert [reason.kind for reason in hidden.verdict.reasons] == ["downgraded"]


def test_a_downgrade_is_not_believed_away():
    built = report(*run(gate="advisory"), *run(scenario="b"), baseline=baseline(run()))
    told_so = json.loads(render_verdict(built))
    told_so["conclusion"] = told_so["verdict"]["conclusion"] = "success"
    told_so["verdict"]["reasons"] = []
    with pytest.raises(InputError, match="it claims success, but it is advisory now"):
        parse_verdict(json.dumps(told_so))


def judged_by(judge):
    return {"conditions": {"judge": judge}}


def test_another_judge_is_no_regression():
    now, before = run(10, 10, **judged_by("b"), **LAX), run(20, **judged_by("a"), **LAX)
    built = report(*now, baseline=baseline(before))
    assert built.passed
    assert told(built.verdict.warnings) == [
        ("not_comparable", "not comparable with the baseline: judge was a, is b")
    ]


def test_another_model_is_compared():
    now, before = run(10, 10, model="b", **LAX), run(20, model="a", **LAX)
    built = report(*now, baseline=baseline(before))
    assert [reason.kind for reason in built.verdict.reasons] == ["regression"]
    assert parse_verdict(render_verdict(built)) == built


def test_iterations_under_other_conditions_are_set_aside_and_said():
    def under(judge):
        return {**judged_by(judge), **LAX}

    odd = episode(iteration=21, **under("b"))
    built = report(*run(5, 15, **under("a")), odd, baseline=baseline(run(20, **under("a"))))
    assert [reason.kind for reason in built.verdict.reasons] == ["regression"]
    message = "1 of 21 iterations is not comparable with the baseline: judge was a, is b"
    assert told(built.verdict.warnings) == [("not_comparable", message)]
    assert parse_verdict(render_verdict(built)) == built


def test_a_verdict_that_sets_failures_aside_is_not_believed():
    before = baseline(run(20, **judged_by("a")))
    odd = episode(iteration=30, **judged_by("b"))
    built = report(*run(20, 1, **judged_by("a"), **LAX), odd, baseline=before)
    text = render_verdict(built)
    assert '"set_aside": 1' in text
    with pytest.raises(InputError, match="is not what it did"):
        parse_verdict(text.replace('"set_aside": 1', '"set_aside": 2'))


def runs(many, of):
    """Runs of the base that are no copies of each other."""
    return [run(of, duration_ms=number) for number in range(many)]


def test_far_fewer_iterations_than_before_are_said():
    built = report(*run(1), baseline=baseline(run(20)))
    message = (
        "1 iteration was judged, 20 in the baseline's latest run: too few to show a drop; "
        "run as many as before"
    )
    assert (built.passed, told(built.verdict.warnings)) == (True, [("fewer_iterations", message)])
    assert parse_verdict(render_verdict(built)) == built


def test_iterations_that_could_show_a_drop_and_cannot_any_more_are_said():
    built = report(*run(7), baseline=baseline(*runs(10, 10)))
    assert [kind for kind, _ in told(built.verdict.warnings)] == ["fewer_iterations"]


def test_passing_only_on_a_retry_is_said_where_it_was_not_so():
    def retried(count):
        first = [failing(iteration=n, attempt=1) for n in range(count)]
        return first + [episode(iteration=n, attempt=2) for n in range(count)]

    built = report(*retried(10), baseline=baseline(run(10)))
    message = "10 of 10 iterations passed only on a retry, 0 of 10 in the baseline"
    assert (built.passed, told(built.verdict.warnings)) == (True, [("flakier", message)])
    assert told(report(*retried(10), baseline=baseline(retried(10))).verdict.warnings) == []
    assert told(report(*retried(1), *run(9), baseline=baseline(run(10))).verdict.warnings) == []


def test_what_was_judged_before_and_is_not_now_is_said():
    skipped = [episode(iteration=n, outcome="skipped", reason="x") for n in range(3)]
    lax = GatePolicy(allow_skipped=True)
    built = report(*skipped, *run(scenario="b"), baseline=baseline(run(10)), policy=lax)
    assert [s.change for s in built.comparison.scenarios] == ["new", "not_judged"]
    expected = [("not_judged", "no iteration was judged, and 10 of 10 passed in the baseline")]
    assert (built.passed, told(built.verdict.warnings)) == (True, expected)
    strict = report(*skipped, *run(scenario="b"), baseline=baseline(run(10)))
    assert [reason.kind for reason in strict.verdict.reasons] == ["skipped"]
    assert told(strict.verdict.warnings) == []


def test_a_budget_that_was_kept_before_is_a_warning():
    over = {"budgets": {"tool_calls": {"used": 6, "limit": 4, "hard": False}}}
    built = report(*run(**over), baseline=baseline(run()))
    assert ("newly_over", "newly over budget: tool_calls") in told(built.verdict.warnings)
    assert built.passed


@each_row(
    ("now", "before", "allowed", "reason"),
    [
        (costing(1.1), costing(1.0), {}, None),
        (costing(1.1), costing(1.0), {"cost": 0.2}, None),
        (costing(1.1, 1), costing(1.0, 1), {"cost": 0.05},
         "cost per episode rose by 10.0% or more, 5% allowed"),
        (costing(1.1), costing(1.0), {"cost": 0.05},
         "cost per episode rose by 10.0% or more, 5% allowed"),
        (costing(None), costing(1.0), {"cost": 9},
         f"cost per episode {UNMEASURED}, 900% allowed"),
        (costing(0.1), costing(0.0), {"cost": 9},
         "cost per episode rose from nothing, 900% allowed"),
        (costing(1, latency=200), costing(1), {"latency": 0.5},
         "p95 turn latency rose by 100.0% or more, 50% allowed"),
    ],
)  # fmt: skip
def test_cost_and_latency_may_rise_so_far(now, before, allowed, reason):
    built = report(
        *now, baseline=baseline(before), policy=GatePolicy(increases=AllowedIncreases(**allowed))
    )
    assert told(built.verdict.reasons) == ([("increase", reason)] if reason else [])


def test_a_rise_that_chance_may_explain_warns():
    dear, cheap = costing(1.5, 1, iterations=1), costing(1.0, 1, iterations=1)
    built = report(
        *dear, baseline=baseline(cheap), policy=GatePolicy(increases=AllowedIncreases(cost=0.1))
    )
    assert built.passed
    assert told(built.verdict.warnings) == [
        ("possible_increase", f"cost per episode rose by 50.0%, {BY_CHANCE}; 10% allowed")
    ]


@each_row(
    ("before", "least", "expected"),
    [(1.0, 0.11, True), (1.0, 0.1, False), (1.0, None, False), (0.0, None, True)],
)
def test_a_rise_is_certain_where_its_lower_limit_is_above_the_allowed_one(before, least, expected):
    assert is_certain_increase(MetricChange(before, 1.5, 3, 3, least=least), 0.1) is expected


def test_one_iteration_without_a_price_does_not_hide_a_rise():
    now = costing(9.0, 3)
    now[0] = costing(None, 1)[0]
    built = report(
        *now,
        baseline=baseline(costing(9.0, 3)),
        policy=GatePolicy(increases=AllowedIncreases(cost=0.1)),
    )
    assert told(built.verdict.reasons) == [
        ("increase", f"cost per episode {UNMEASURED.replace('2 of 2', '1 of 3')}, 10% allowed")
    ]


def test_copies_of_a_run_are_said_and_count_once():
    built = report(*run(5), baseline=baseline(run(5), run(5), run(5)))
    assert told(built.verdict.warnings) == [
        ("baseline", f"2 of 3 runs of the baseline {COPIED}; keep each run once")
    ]


@each_row(
    ("runs", "rate", "expected"),
    [
        (run(1), 1.0, True),
        (run(4, 1), 1.0, False),
        (run(4, 1), 0.8, True),
        (run(4, 1, min_pass_rate=0.5), 1.0, True),
        ([episode(outcome="error")], 1.0, None),
        ([episode(outcome="skipped")], 1.0, None),
    ],
)
def test_both_sides_are_judged_alike(runs, rate, expected):
    (scenario,) = report(*runs).summary.scenarios
    assert is_passing(scenario, GatePolicy(min_pass_rate=rate)) is expected
