"""Builders with defaults: a test shows only what matters to it."""

from __future__ import annotations

from typing import Any

from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.contract.results import Session
from ci_agent_eval.facts import Loaded, facts_of
from ci_agent_eval.gate import GatePolicy
from ci_agent_eval.report import Report, build_report


def turn(content: str = "hi", **overrides: Any) -> dict[str, Any]:
    """One agent turn as it is written down."""
    return {"role": "assistant", "content": content, "source": "scripted", **overrides}


def tool_call(name: str = "lookup_order", **overrides: Any) -> dict[str, Any]:
    return {"name": name, "arguments": {"order_id": 1001}, "result": "ok", **overrides}


def failed_assertion(name: str = "says sorry", **overrides: Any) -> dict[str, Any]:
    return {
        "name": name,
        "passed": False,
        "reason": "it did not",
        "file": "tests/test_refunds.py",
        "line": 48,
        **overrides,
    }


def episode(scenario_id: str = "refund", **overrides: Any) -> Episode:
    """A passing episode of one turn."""
    fields: dict[str, Any] = {
        "scenario_id": scenario_id,
        "nodeid": f"tests/test_refunds.py::test_{scenario_id}",
        "file": "tests/test_refunds.py",
        "line": 40,
        "trajectory": {"turns": [{"role": "user", "content": "hello"}, turn(latency_ms=100)]},
        **overrides,
    }
    return Episode.model_validate(fields)


def failing(scenario_id: str = "refund", **overrides: Any) -> Episode:
    """An episode with one failed assertion."""
    fields: dict[str, Any] = {
        "outcome": "failed",
        "assertions": [failed_assertion()],
        **overrides,
    }
    return episode(scenario_id, **fields)


def loaded(*episodes: Episode, **overrides: Any) -> Loaded:
    """What a run of these episodes leaves behind, read from one finished session."""
    fields: dict[str, Any] = {
        "episodes": tuple(facts_of(item) for item in episodes),
        "sessions": (Session(state="finished", wall_time_s=2.5, selected=len(episodes)),),
        "sources": (SourceFile("results.json", "episodes", cases=len(episodes)),),
        **overrides,
    }
    return Loaded(**fields)


def report(
    *episodes: Episode,
    suite: str = "default",
    budgets: SuiteBudgets | None = None,
    policy: GatePolicy | None = None,
    **overrides: Any,
) -> Report:
    """The report of a run of these episodes; `overrides` replace parts of `Loaded`."""
    return build_report(
        loaded(*episodes, **overrides),
        suite=suite,
        budgets=budgets or SuiteBudgets(),
        policy=policy or GatePolicy(),
    )


def finding(kind: Any = "unreadable_file", **overrides: Any) -> Finding:
    fields: dict[str, Any] = {"where": "junit.xml", "message": "it is cut off", **overrides}
    return Finding(kind, **fields)
