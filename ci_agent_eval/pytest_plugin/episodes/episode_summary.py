"""Short forms of an episode: JUnit properties, and plain data for the terminal summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ci_agent_eval.contract.budgets import Budget
from ci_agent_eval.contract.episode import Assertion, Episode, describe_violation
from ci_agent_eval.contract.iteration_range import IterationRange
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.collection import iterations
from ci_agent_eval.pytest_plugin.collection.detection import NAME, owns_marker
from ci_agent_eval.pytest_plugin.episodes.failure_details import build_failure_details

PREFIX = "agent_eval."
"""Prefix of all our JUnit properties."""


def list_junit_properties(episode: Episode) -> Iterator[tuple[str, str]]:
    """Yield the properties of the episode's test case."""
    yield f"{PREFIX}nodeid", episode.nodeid or ""
    yield f"{PREFIX}scenario_id", episode.scenario_id
    yield f"{PREFIX}outcome", episode.outcome
    yield f"{PREFIX}gate", episode.gate
    for name, budget in episode.budgets.iter_named():
        yield f"{PREFIX}budget.{name}", _format_budget(budget)


def is_result_property(name: str) -> bool:
    """Return whether a property describes the episode's result and not its identity."""
    return name.startswith(PREFIX) and name != f"{PREFIX}nodeid"


def _format_budget(budget: Budget) -> str:
    used = "not measured" if budget.used is None else _format_number(budget.used)
    return f"{used}/{_format_number(budget.limit)}"


def _format_number(figure: float) -> str:
    return str(int(figure)) if float(figure).is_integer() else repr(figure)


def build_summary_record(episode: Episode) -> dict[str, Any]:
    """Return the data of the terminal summary, in a form that xdist can send."""
    return {
        "key": list(episode.key),
        "scenario_id": episode.scenario_id,
        "agent": episode.agent,
        "outcome": episode.outcome,
        "reason": episode.reason,
        "failed": [_format_assertion(assertion) for assertion in episode.failed_assertions],
        "violations": [describe_violation(v) for v in episode.violations],
        "cost_usd": _get_agent_cost(episode),
        "is_unseen": episode.is_unseen,
        "judge_cost_usd": episode.judge.cost_usd if episode.judge else None,
        "user_cost_usd": episode.simulated_user.cost_usd if episode.simulated_user else None,
        "failure": build_failure_details(episode),
        "evaluation": _dump_evaluation(episode) if episode.mode == "evaluation" else None,
    }


_EVALUATION_FIELDS = {"scenario_id", "nodeid", "iteration", "attempt", "mode", "outcome", "reason"}


def _dump_evaluation(episode: Episode) -> dict[str, Any]:
    """Return the data of the evaluation report; it is small without the trajectory."""
    return episode.model_dump(
        mode="json",
        include={*_EVALUATION_FIELDS, "assertions", "columns", "duration_ms"},
        exclude_defaults=True,
    ) | {"outcome": episode.outcome}


def _format_assertion(assertion: Assertion) -> str:
    return (
        f"{assertion.name} ({assertion.file}:{assertion.line})"
        if assertion.file
        else assertion.name
    )


def _get_agent_cost(episode: Episode) -> float | None:
    cost = episode.trajectory.cost_usd if episode.trajectory else None
    budget = episode.budgets.cost_usd
    return cost if cost is not None or budget is None else budget.used


_MAX_NAMES = 3
"""Maximum number of tests that a note names."""


def list_notes(items: Sequence[pytest.Item], default: IterationRange) -> Iterator[str]:
    """Yield a sentence for each kind of marker that has no effect, and on what runs alone."""
    yield from _note_unrepeated(items, default)
    yield from _note_foreign_markers(items)
    if options.get_concurrency(items[0].config) > 1:
        from ci_agent_eval.pytest_plugin.concurrency.eligibility import (  # noqa: PLC0415 - inert until used
            build_alone_notes,
        )

        yield from build_alone_notes(items)


def _note_unrepeated(items: Sequence[pytest.Item], default: IterationRange) -> Iterator[str]:
    found = sorted(item.nodeid for item in iterations.find_unrepeated_episodes(items, default))
    if found:
        yield (
            f"run once, not repeated: {_join_names(found)}; pytest repeats neither methods "
            "of unittest.TestCase nor what is marked after collection"
        )


def _note_foreign_markers(items: Sequence[pytest.Item]) -> Iterator[str]:
    marked = [item for item in items if item.get_closest_marker(NAME) is not None]
    ignored = sorted(item.nodeid for item in marked if not owns_marker(item))
    if ignored:
        yield (
            f"the marker `{NAME}` of {_join_names(ignored)} is ignored, for pytest's "
            "setting `markers` names it as the project's own; take it out of there"
        )


def _join_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"
