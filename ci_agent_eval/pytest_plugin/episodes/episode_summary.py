"""An episode in few words: JUnit properties, and plain data for the terminal summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ci_agent_eval.contract.budgets import Budget
from ci_agent_eval.contract.episode import Assertion, Episode, describe_violation

PREFIX = "agent_eval."
"""Begins the name of every JUnit property of ours."""


def list_junit_properties(episode: Episode) -> Iterator[tuple[str, str]]:
    """Yield the properties of the episode's test case."""
    yield f"{PREFIX}nodeid", episode.nodeid or ""
    yield f"{PREFIX}scenario_id", episode.scenario_id
    yield f"{PREFIX}outcome", episode.outcome
    yield f"{PREFIX}gate", episode.gate
    for name, budget in episode.budgets.iter_named():
        yield f"{PREFIX}budget.{name}", _format_budget(budget)


def is_result_property(name: str) -> bool:
    """Say whether a property is of how the episode stands, and not of who it is."""
    return name.startswith(PREFIX) and name != f"{PREFIX}nodeid"


def _format_budget(budget: Budget) -> str:
    used = "not measured" if budget.used is None else _format_number(budget.used)
    return f"{used}/{_format_number(budget.limit)}"


def _format_number(figure: float) -> str:
    return str(int(figure)) if float(figure).is_integer() else repr(figure)


def build_summary_record(episode: Episode) -> dict[str, Any]:
    """Return what the terminal summary says of the episode, as data that xdist can carry."""
    return {
        "key": list(episode.key),
        "scenario_id": episode.scenario_id,
        "agent": episode.agent,
        "outcome": episode.outcome,
        "reason": episode.reason,
        "failed": [_format_assertion(assertion) for assertion in episode.failed_assertions],
        "violations": [describe_violation(v) for v in episode.violations],
        "cost_usd": _get_agent_cost(episode),
        "judge_cost_usd": episode.judge.cost_usd if episode.judge else None,
        "user_cost_usd": episode.simulated_user.cost_usd if episode.simulated_user else None,
        "evaluation": _dump_evaluation(episode) if episode.mode == "evaluation" else None,
    }


_MEASURED = {"scenario_id", "nodeid", "iteration", "attempt", "mode", "outcome", "reason"}


def _dump_evaluation(episode: Episode) -> dict[str, Any]:
    """Return what the report of an evaluation says of it; without its trajectory it is small."""
    return episode.model_dump(
        mode="json", include={*_MEASURED, "assertions", "duration_ms"}, exclude_defaults=True
    ) | {"outcome": episode.outcome}


def _format_assertion(assertion: Assertion) -> str:
    return (
        f"{assertion.name} ({assertion.file}:{assertion.line})"
        if assertion.file
        else assertion.name
    )


def _get_agent_cost(episode: Episode) -> float | None:
    shown = episode.trajectory.cost_usd if episode.trajectory else None
    budget = episode.budgets.cost_usd
    return shown if shown is not None or budget is None else budget.used
