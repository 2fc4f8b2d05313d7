"""The reports that the golden files of `render` show, one for each thing a reader may meet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ci_agent_eval.analysis.loaded_results import (
    JUnitCase,
    OutcomeTally,
    PlainTests,
)
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.findings import (
    MissingShards,
    SourceFile,
    StoppedRun,
)
from ci_agent_eval.contract.results import CollectionSkip, RemovedScenario, Session
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.gate.report import Report
from ci_agent_eval.render.links import Links
from tests.builders import (
    COST_STOP,
    HOSTILE,
    episode,
    evaluated,
    failed_assertion,
    failing,
    finding,
    in_quarantine,
    live,
    manifest_of,
    report,
)
from tests.compared_reports import (
    agreed,
    compared,
    compared_and_passed,
    hostile_agreed,
    hostile_baseline,
    no_baseline,
    regressed,
)

LINKS = Links(
    server_url="https://github.com",
    repository="acme/support-agent",
    sha="9c1d2e7aa0b1c2d3e4f5061728394a5b6c7d8e9f",
    run_url="https://github.com/acme/support-agent/actions/runs/7",
    artifact_url="https://github.com/acme/support-agent/actions/runs/7/artifacts/11",
)
PAGE_LINKS = replace(
    LINKS, report_url="https://github.com/acme/support-agent/actions/runs/7/artifacts/12"
)
"""Links after `report.html` was uploaded."""


def passing() -> Report:
    return report(
        *(
            episode(name, iteration=number, trajectory=live(0.0041, 900 + 10 * number))
            for name in ("refund_flow_v1", "refund_over_limit", "order_status")
            for number in (1, 2, 3)
        )
    )


def failing_over_budget() -> Report:
    asked = failed_assertion(
        "escalates refunds over $500", reason="called issue_refund before ask_manager"
    )
    told = failed_assertion("tells the customer", reason="no reply named the manager", line=52)
    turns = live(0.0052, 1380)
    return report(
        *(episode("refund_over_limit", iteration=n, trajectory=turns) for n in (1, 2)),
        failing("refund_over_limit", iteration=3, assertions=[asked, told], trajectory=turns),
        failing("refund_over_limit", iteration=4, assertions=[asked], trajectory=turns),
        episode(
            "refund_flow_v1",
            trajectory=live(0.004),
            budgets={
                "tool_calls": {"used": 6, "limit": 4},
                "latency_ms": {"p95": 1250.5, "limit": 1250},
                "cost_usd": {"limit": 0.003, "hard": False},
                "custom": {"handovers": {"limit": 1, "unit": "people"}},
            },
        ),
        episode("order_status", attempt=1, outcome="failed", reason="timed out"),
        episode("order_status", attempt=2),
        failing("small_talk", gate="advisory"),
        budgets=SuiteBudgets.model_validate({"total_cost_usd": 0.02, "total_tokens": 5000}),
        suite="refund desk",
    )


def interrupted() -> Report:
    told = "3 of 8 episodes finished; look at the job's log, then run it again"
    return report(
        episode("a"),
        episode("b"),
        episode("c"),
        episode("d", outcome="error", reason="interrupted"),
        findings=(finding("interrupted", where="session.json", message=told),),
    )


def stopped() -> Report:
    return report(
        episode("a"),
        episode("b"),
        episode("c", outcome="error", reason=f"stopped: {COST_STOP.sentence}"),
        findings=(
            finding(
                "stopped",
                where="session.json",
                message=StoppedRun(COST_STOP, 9, 6, ("refund", HOSTILE)),
            ),
        ),
    )


def known() -> Report:
    """A run that differs from the manifest in every way, restricted by a path."""
    skip = CollectionSkip(file="tests/test_stripe.py", reason=HOSTILE)
    removed = RemovedScenario(scenario_id="removed", by="tests/conftest.py")
    hook = RemovedScenario(scenario_id="hook")
    session = Session(
        state="finished",
        paths=("tests",),
        removed=(hook, removed),
        collection_skips=(skip,),
    )
    return report(
        episode("now_advisory", gate="advisory"),
        episode("now_required"),
        episode("now", was=["before"]),
        episode(HOSTILE),
        *(
            episode("skips", iteration=n, iterations=3, outcome="skipped", reason="no key")
            for n in (1, 2)
        ),
        episode("skips", iteration=3, iterations=3),
        sessions=(session,),
        quarantine=(in_quarantine("held"),),
        manifest=manifest_of(
            *("gone", "removed", "hook", "stripe", "now_advisory", "before", "held", "skips"),
            "elsewhere",
            advisory=("now_required", "idle"),
            stripe="tests/test_stripe.py",
            elsewhere="other/test_b.py",
        ),
    )


def no_results() -> Report:
    told = "no file matched; check that the tests ran and where they write"
    where = "agent-eval-report/results.json"
    return report(
        sources=(), sessions=(), findings=(finding("no_results", where=where, message=told),)
    )


def junit_only() -> Report:
    cases = (
        JUnitCase(
            "tests.test_api",
            "test_timeout[30]",
            "failed",
            "assert 31 < 30",
            "def test_timeout():\n>       assert 31 < 30\nE       assert 31 < 30",
            "tests/test_api.py",
            12,
        ),
        JUnitCase("tests.test_api", "test_upload", "error", "fixture 'bucket' not found"),
    )
    return report(
        tests=PlainTests(OutcomeTally(117, 1, 1, 1), cases, flaky=("tests.test_api::test_slow",)),
        sources=(SourceFile("junit.xml", "junit", 120, 117, 1, 1, 1),),
        sessions=(),
    )


def errors_only() -> Report:
    return report(
        *(episode("refund", iteration=n, outcome="error", reason="429 rate limit") for n in (1, 2)),
        episode("order_status"),
    )


def advisory_only() -> Report:
    return report(
        episode("refund"),
        failing("small_talk", gate="advisory"),
        failing(
            "tone", gate="advisory", assertions=[failed_assertion("is kind", severity="error")]
        ),
    )


def everything_wrong() -> Report:
    """Every kind of reason and of finding in one report."""
    kinds = (
        "unreadable_file", "repaired_file", "declared_counts_differ", "disagreement",
        "collection_error", "interrupted", "duplicate", "stopped",
    )  # fmt: skip
    return report(
        failing(
            "fails",
            budgets={"tool_calls": {"used": 5, "limit": 4}, "max_turns": {"used": 9, "limit": 3}},
        ),
        episode("errs", outcome="error", reason="connection reset"),
        episode("skips", outcome="skipped", reason="no key"),
        episode("costs", budgets={"cost_usd": 0.01}),
        tests=PlainTests(
            OutcomeTally(1, 1, 1),
            (JUnitCase("c", "t", "failed", "no"), JUnitCase("c", "u", "error")),
        ),
        findings=tuple(finding(kind) for kind in kinds),
        budgets=SuiteBudgets.model_validate({"total_tokens": 10, "total_wall_time_s": 1}),
    )


def iterations() -> Report:
    """One scenario run by two agents and once without a name, another that tolerates a failure."""
    asked = failed_assertion("asks a manager", reason="it paid at once")

    def run(number: int, agent: str | None, **fields: Any) -> dict[str, Any]:
        timed = {"duration_ms": 1500 + number, "trajectory": live(0.004, 900 + number)}
        return {"iteration": number, "agent": agent, **timed, **fields}

    return report(
        *(episode("refund", **run(n, "desk-v1")) for n in range(1, 11)),
        *(episode("refund", **run(n, "desk-v2")) for n in range(1, 8)),
        *(failing("refund", assertions=[asked], **run(n, "desk-v2")) for n in (8, 9)),
        episode(
            "refund",
            **run(10, None, outcome="error", reason="stopped: timeout", stop_reason="timeout"),
        ),
        episode("refund", **run(1, None, stop_reason="completed")),
        *(episode("greeting", **run(n, "desk-v1", min_passes=3)) for n in (1, 2, 3)),
        failing(
            "greeting",
            **run(4, "desk-v1", min_passes=3, stop_reason="max_turns", rate_limited=4),
        ),
        failing(
            "small_talk",
            gate="advisory",
            **run(1, "desk-v1", cassette_misses=2, stop_reason="max_turns"),
        ),
        policy=GatePolicy(max_error_rate=0.1),
    )


def oversize() -> Report:
    reason = "the answer did not name the order, " * 20
    many = [failed_assertion(f"check {n}", reason=reason, line=n) for n in range(1, 41)]
    return report(*(failing(f"scenario_{n:03}", assertions=many) for n in range(120)))


def evaluations() -> Report:
    """Evaluations beside a strict scenario: measured, judged by a model, nothing required."""
    judge = {"calls": 2, "tokens": {"input": 900, "output": 100}, "cost_usd": 0.01}
    fields = {"trajectory": live(0.004), "judge": judge}
    return report(
        episode("refund_flow_v1", trajectory=live(0.004)),
        evaluated("Create basic diagram", True, True, **fields),
        evaluated("Build incrementally", True, False, False, iteration=1, **fields),
        evaluated("Build incrementally", True, False, True, iteration=2, **fields),
        evaluated("Name the boxes", True, False, **fields),
        evaluated("Draw offline", True, outcome="error", reason="ConnectionError: refused"),
        evaluated("Draw in colour", outcome="skipped", reason="no key"),
        failing("small_talk", gate="advisory", trajectory=live(0.004)),
    )


def evaluations_only() -> Report:
    return report(evaluated("Create", True, True), evaluated("Extend", True, False))


def below_thresholds() -> Report:
    return report(
        evaluated("Create", True, True),
        evaluated("Extend", True, False),
        evaluated("Undo", outcome="error", reason="the judge broke"),
        episode("strict"),
        policy=GatePolicy(eval_min_pass_rate=0.5, eval_min_score=0.755),
    )


def shards_broken() -> Report:
    """One shard of seven is missing, and with it come findings that say nothing more."""
    return report(
        failing("refund"),
        episode("tone"),
        findings=(
            *(
                finding("disagreement", where=f"test_{n}", message="in one of two")
                for n in range(9)
            ),
            *(finding("duplicate", where=f"test_{n}", message="in two files") for n in range(3)),
            finding("shards", where="", message=MissingShards((3,), 7)),
            finding(
                "shards",
                where="shards/2/session.json",
                message="a later attempt at the same shard replaces these results",
                blocking=False,
            ),
        ),
    )


def hostile(text: str = HOSTILE) -> Report:
    """The text in every place that a test, an episode or a file fills."""
    check = failed_assertion(text, reason=text, file=text, line=7)
    return report(
        failing(
            text,
            nodeid=text,
            file=text,
            assertions=[check, failed_assertion(text, severity="warning")],
        ),
        episode(f"{text}2", reason=text, outcome="error", file=text),
        episode(f"{text}3", reason=text, outcome="skipped"),
        episode(
            f"{text}4",
            attempt=2,
            budgets={"custom": {text: {"used": 5, "limit": 4, "unit": text}}},
            file=text,
        ),
        failing(f"{text}5", gate="advisory"),
        evaluated(f"{text}6", file=text, assertions=[check, check]),
        tests=PlainTests(
            OutcomeTally(1, 1, 1),
            (
                JUnitCase(text, text, "failed", text, text, text, 3),
                JUnitCase("", text, "error", None, text),
            ),
            (text,),
        ),
        sources=(SourceFile(text, "junit", 1), SourceFile("r", "episodes", readable=False)),
        findings=(
            finding("unreadable_file", where=text, message=text),
            finding("repaired_file", where=text, message=text, blocking=False),
        ),
        policy=GatePolicy(),
        suite=text,
    )


REPORTS = {
    "passing": passing,
    "failing": failing_over_budget,
    "interrupted": interrupted,
    "stopped": stopped,
    "known": known,
    "no_results": no_results,
    "junit_only": junit_only,
    "errors_only": errors_only,
    "advisory_only": advisory_only,
    "everything_wrong": everything_wrong,
    "iterations": iterations,
    "evaluations": evaluations,
    "evaluations_only": evaluations_only,
    "below_thresholds": below_thresholds,
    "compared": compared,
    "compared_and_passed": compared_and_passed,
    "regressed": regressed,
    "shards_broken": shards_broken,
    "no_baseline": no_baseline,
    "hostile_baseline": hostile_baseline,
    "agreed": agreed,
    "hostile_agreed": hostile_agreed,
    "hostile": hostile,
}
