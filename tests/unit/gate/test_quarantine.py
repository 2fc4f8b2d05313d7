"""Quarantine: what does not gate for a while, and what gates again."""

from __future__ import annotations

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.results import Session, Shard
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from tests.builders import baseline, episode, evaluated, failing, in_quarantine, report, turn
from tests.tables import each_row

OVER = {"tool_calls": {"used": 6, "limit": 4}}


@each_row(
    "bad",
    [
        failing("refund"),
        episode("refund", outcome="error", reason="429"),
        episode("refund", outcome="skipped", reason="not today"),
        episode("refund", budgets=OVER),
    ],
    ids=["fails", "errs", "skipped", "over budget"],
)
def test_what_is_in_quarantine_does_not_gate(bad):
    assert not report(bad, episode("other")).passed
    built = report(bad, episode("other"), quarantine=(in_quarantine(),))
    assert (built.passed, built.verdict.reasons) == (True, ())
    (item,) = built.quarantined_scenarios
    assert item.scenario.in_quarantine
    assert built.summary.gated.total == 1


def test_it_runs_is_counted_and_costs():
    costly = failing("refund", trajectory={"turns": [turn(cost_usd=2)]})
    built = report(
        costly,
        episode("other", trajectory={"turns": [turn(cost_usd=1)]}),
        quarantine=(in_quarantine(),),
        budgets=SuiteBudgets.model_validate({"total_cost_usd": 2.5}),
    )
    assert built.summary.tally.failed == 1
    assert built.summary.totals.cost_usd == 3
    assert [reason.kind for reason in built.verdict.reasons] == ["suite_budget"]


def test_after_the_day_it_gates_again_and_that_is_said():
    built = report(failing("refund"), quarantine=(in_quarantine(expired=True),))
    assert [reason.kind for reason in built.verdict.reasons] == ["scenario"]
    (warning,) = built.verdict.warnings
    assert (warning.kind, warning.scenario_id) == ("quarantine", "refund")
    assert warning.message == (
        "its quarantine ended on 2026-01-31, so it gates again "
        "(owner: payments; reason: flaky tool)"
    )
    assert report(episode("refund"), quarantine=(in_quarantine(expired=True),)).passed


def test_what_comparing_finds_of_it_does_not_gate():
    bad = [failing(iteration=i, min_pass_rate=0.0) for i in range(1, 21)]
    good = [episode(iteration=i, min_pass_rate=0.0) for i in range(1, 21)]
    rest = episode("other")
    assert not report(*bad, rest, baseline=baseline(good)).passed
    built = report(*bad, rest, baseline=baseline(good), quarantine=(in_quarantine(),))
    assert built.passed
    assert [warning.kind for warning in built.verdict.warnings] == ["regression"]


def test_only_the_agent_that_is_named_is_in_quarantine():
    built = report(
        failing("refund", agent="a"),
        failing("refund", agent="b"),
        quarantine=(in_quarantine(agent="a"),),
    )
    assert [(r.kind, r.agent) for r in built.verdict.reasons] == [("scenario", "b")]


def test_thresholds_are_about_evaluations_out_of_quarantine():
    runs = [evaluated("good", True, True), evaluated("bad", False, False)]
    policy = GatePolicy(eval_min_score=0.9, eval_min_pass_rate=1.0)
    assert not report(*runs, policy=policy).passed
    built = report(*runs, policy=policy, quarantine=(in_quarantine("bad"),))
    assert built.passed
    assert built.summary.gating_evaluations.mean_score == 1
    assert built.summary.evaluations.mean_score == 0.5


def test_all_in_quarantine_is_said_and_no_failure():
    built = report(failing("refund"), quarantine=(in_quarantine("*"),))
    assert built.passed
    assert built.required_scenarios == ()


def test_an_entry_about_nothing_is_a_finding_that_does_not_gate():
    agreed = (in_quarantine("refund*", agent="x"), in_quarantine("oth*"))
    built = report(episode("other"), quarantine=agreed)
    (found,) = built.summary.findings
    assert (found.kind, found.where, found.blocking) == ("unused_entry", "[[quarantine]]", False)
    assert found.message.startswith("quarantine of 'refund*' by agent 'x': no scenario of this run")
    assert built.passed


@each_row("part", [True, False])
def test_a_shard_does_not_call_an_entry_about_nothing_what_another_shard_has(part):
    shard = Shard(index=1, count=2) if part else None
    sessions = (Session(state="finished", selected=1, shard=shard),)
    built = report(episode("a"), quarantine=(in_quarantine("b"),), sessions=sessions)
    assert len(built.summary.findings) == (0 if part else 1)


@each_row("expired", [False, True])
def test_a_verdict_with_it_is_read_back(expired):
    built = report(
        failing("refund"), episode("other"), quarantine=(in_quarantine(expired=expired),)
    )
    assert parse_verdict(render_verdict(built)) == built
