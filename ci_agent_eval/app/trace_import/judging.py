"""Judging of traces by checks and budgets, and their results file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ci_agent_eval.app.trace_import.traces import ProductionTrace
from ci_agent_eval.authoring.scenarios.scenario import build_checks
from ci_agent_eval.checks import Check
from ci_agent_eval.checks.conversion import validate_assertions
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.canonical import canonical_json, render_results
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.results import RESULTS_NAME, SESSION_NAME
from ci_agent_eval.contract.stops import find_stop_cause
from ci_agent_eval.contract.trace_rules import TraceRules
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import replace_file


def judge_traces(traces: Iterable[ProductionTrace], rules: TraceRules) -> list[Episode]:
    """Return an episode for each trace, sorted. Raises InputError if there is no rule."""
    if rules.is_empty:
        raise InputError(
            "no rule judges the traces; add [traces.checks] or [traces.budgets] to "
            "agent-eval.toml, or to the file of --config"
        )
    checks = tuple(build_checks(rules.checks))
    episodes = (_judge_trace(trace, checks, rules.budgets) for trace in traces)
    return sorted(episodes, key=lambda episode: episode.key)


def _judge_trace(trace: ProductionTrace, checks: Sequence[Check], budgets: Budgets) -> Episode:
    fields: dict[str, Any] = {
        "scenario_id": trace.id,
        "agent": trace.agent,
        "model": trace.model,
        "evidence": "required",
        "budgets": budgets,
        "trajectory": trace.trajectory,
        "metadata": {"trace": trace.place},
        **_build_ending(trace),
    }
    episode = Episode(**fields)
    if episode.outcome == "error" and not trace.trajectory.agent_turns:
        return episode
    assertions = tuple(one for check in checks for one in _apply_check(check, episode))
    return Episode(**fields, assertions=assertions)


def _apply_check(check: Check, episode: Episode) -> Sequence[Assertion]:
    # The checks of a file are all synchronous.
    return validate_assertions(check, check.assertions(episode))


def _build_ending(trace: ProductionTrace) -> dict[str, Any]:
    """Return the outcome before the checks, and why the run ended."""
    answers = trace.trajectory.agent_turns
    if not answers:
        return {"outcome": "error", "reason": "the trace has no answer of a model"}
    cause = find_stop_cause(answers[-1])
    if cause is None:
        return {"outcome": "passed", "stop_reason": "completed"}
    return {"outcome": "failed", "stop_reason": cause.reason, "reason": cause.sentence}


def write_results(folder: Path, suite: str, episodes: Iterable[Episode], *, complete: bool) -> Path:
    """Write `results.json` of a folder. Raises InputError, also for the folder of a run."""
    path = folder / RESULTS_NAME
    if (folder / SESSION_NAME).exists():
        raise InputError(f"{folder} is the report folder of a run; give another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with replace_file(path) as file:
            file.writelines(render_results(suite, map(canonical_json, episodes), complete=complete))
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    return path
