"""What the report wing keeps of an episode or a JUnit case once its file is read.

A trajectory may be large and is needed for a few figures only; facts are small, so
that memory grows with the number of episodes and not with what they said.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

from ci_agent_eval.contract.episode import (
    Assertion,
    Conditions,
    Episode,
    Gating,
    Outcome,
    SideUsage,
)
from ci_agent_eval.contract.evaluation import score_episode
from ci_agent_eval.contract.evidence import EvidencePart
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.contract.measurement import BudgetViolation
from ci_agent_eval.contract.results import Session
from ci_agent_eval.contract.stops import StopReason
from ci_agent_eval.contract.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class ModelCallCounts:
    """How many of the agent's replies came from a model, a recording or a script."""

    live: int = 0
    replayed: int = 0
    scripted: int = 0
    misses: int = 0
    """Calls that no recording answered."""
    rate_limited: int = 0
    """Times a model's API said that there were too many calls."""

    def __add__(self, other: ModelCallCounts) -> ModelCallCounts:
        return ModelCallCounts(
            self.live + other.live,
            self.replayed + other.replayed,
            self.scripted + other.scripted,
            self.misses + other.misses,
            self.rate_limited + other.rate_limited,
        )


MAX_ARGUMENTS = 1000
"""Characters kept of a tool call's arguments, for the trajectory diff."""


class TrajectoryStep(NamedTuple):
    """One tool call, as far as a trajectory diff looks at it."""

    turn: int
    """1-based agent turn that made it."""
    tool: str
    arguments: str
    """As JSON with sorted keys, cut at `MAX_ARGUMENTS`."""


@dataclass(frozen=True, slots=True)
class EvaluationScore:
    """What the assertions of an evaluation came to."""

    score: float
    """Mean score of its assertions, 0 to 1."""
    assertions: int
    assertions_passed: int


@dataclass(frozen=True, slots=True)
class EpisodeRecord:
    """One episode, reduced to what summary, gate and report need of it."""

    scenario_id: str
    nodeid: str | None
    file: str | None
    line: int | None
    iteration: int
    iterations: int
    """How many its test declares."""
    attempt: int
    gate: Gating
    min_pass_rate: float | None
    min_passes: int | None
    outcome: Outcome
    reason: str | None
    failed_assertions: tuple[Assertion, ...]
    warnings: tuple[Assertion, ...]
    violations: tuple[BudgetViolation, ...]
    turns: int
    tool_calls: int
    tokens: int | None
    cost_usd: float | None
    latencies_ms: tuple[float, ...]
    calls: ModelCallCounts
    agent: str | None = None
    model: str | None = None
    stop_reason: StopReason | None = None
    duration_ms: float | None = None
    was: tuple[str, ...] = ()
    conditions: Conditions = field(default_factory=Conditions)
    steps: tuple[TrajectoryStep, ...] = ()
    evaluation: EvaluationScore | None = None
    """None: a strict episode."""
    judge: SideUsage | None = None
    """None: no model judged it."""
    simulated_user: SideUsage | None = None
    """None: no model spoke for the user."""
    missing_evidence: tuple[EvidencePart, ...] = ()
    """What it lacks: it is an error, and would have passed."""
    needs_evidence: bool = True
    """Whether it passes only with evidence."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Go between processes as a row of values, in an eighth of the usual time."""
        return EpisodeRecord, _RECORD_VALUES(self)


_RECORD_VALUES = attrgetter(*(one.name for one in fields(EpisodeRecord)))


def build_episode_record(episode: Episode) -> EpisodeRecord:
    """Reduce an episode to its facts."""
    trajectory = episode.trajectory
    return EpisodeRecord(
        scenario_id=episode.scenario_id,
        nodeid=episode.nodeid,
        file=episode.file,
        line=episode.line,
        iteration=episode.iteration,
        iterations=episode.iterations,
        attempt=episode.attempt,
        gate=episode.gate,
        min_pass_rate=episode.min_pass_rate,
        min_passes=episode.min_passes,
        outcome=episode.outcome,
        reason=episode.reason,
        failed_assertions=episode.failed_assertions,
        warnings=tuple(a for a in episode.assertions if not a.passed and a.severity == "warning"),
        violations=episode.violations,
        turns=episode.trajectory_summary.steps_count,
        tool_calls=episode.trajectory_summary.tool_calls_count,
        tokens=_count_tokens(episode),
        cost_usd=_find_cost(episode),
        latencies_ms=trajectory.latencies_ms if trajectory else (),
        calls=_intern_calls(_count_model_calls(episode)),
        agent=episode.agent,
        model=episode.model,
        stop_reason=episode.stop_reason,
        duration_ms=episode.duration_ms,
        was=episode.was,
        conditions=_intern_conditions(episode.conditions),
        steps=_intern_steps(tuple(_trajectory_steps(trajectory))) if trajectory else (),
        evaluation=_score_evaluation(episode) if episode.mode == "evaluation" else None,
        judge=episode.judge,
        simulated_user=episode.simulated_user,
        missing_evidence=episode.missing_evidence,
        needs_evidence=episode.evidence != "none",
    )


def _score_evaluation(episode: Episode) -> EvaluationScore:
    passed = sum(1 for assertion in episode.assertions if assertion.passed)
    return EvaluationScore(score_episode(episode), len(episode.assertions), passed)


_encode = json.JSONEncoder(sort_keys=True, ensure_ascii=False).encode


def _trajectory_steps(trajectory: Trajectory) -> Iterator[TrajectoryStep]:
    for number, turn in enumerate(trajectory.agent_turns, start=1):
        for call in turn.tool_calls:
            yield TrajectoryStep(number, call.name, _encode(call.arguments)[:MAX_ARGUMENTS])


_T = TypeVar("_T", ModelCallCounts, Conditions, tuple[TrajectoryStep, ...])


def _build_interner() -> Callable[[_T], _T]:
    """Make what returns the equal value seen before: thousands of episodes have the same few."""
    return lru_cache(4096)(lambda value: value)


_intern_calls: Callable[[ModelCallCounts], ModelCallCounts] = _build_interner()
_intern_conditions: Callable[[Conditions], Conditions] = _build_interner()
_intern_steps: Callable[[tuple[TrajectoryStep, ...]], tuple[TrajectoryStep, ...]] = (
    _build_interner()
)


def _count_tokens(episode: Episode) -> int | None:
    shown = episode.trajectory.total_tokens if episode.trajectory else None
    if shown is None and episode.tokens is not None:
        return episode.tokens.total
    budget = episode.budgets.token_usage
    return shown if shown is not None or budget is None or budget.used is None else int(budget.used)


def _find_cost(episode: Episode) -> float | None:
    shown = episode.trajectory.cost_usd if episode.trajectory else None
    if shown is None and episode.cost_usd is not None:
        return episode.cost_usd
    budget = episode.budgets.cost_usd
    return shown if shown is not None or budget is None else budget.used


def _count_model_calls(episode: Episode) -> ModelCallCounts:
    turns = episode.trajectory.agent_turns if episode.trajectory else ()
    sources = [turn.source for turn in turns]
    return ModelCallCounts(
        live=sources.count("live"),
        replayed=sources.count("replayed"),
        scripted=sources.count("scripted"),
        misses=episode.cassette_misses,
        rate_limited=episode.rate_limited,
    )


class JUnitCase(NamedTuple):
    """One case of a JUnit file, as its producer meant it. A tuple, because there may be 100,000."""

    classname: str
    name: str
    outcome: Outcome
    message: str | None = None
    """First line of the failure, error or skip."""
    detail: str | None = None
    """Text of the failure: usually a traceback."""
    file: str | None = None
    line: int | None = None
    flaky: bool = False
    """It failed first and passed on a rerun inside the same file."""
    nodeid: str | None = None
    """pytest's node id, where our plugin left it as a property."""

    @property
    def title(self) -> str:
        """How a person finds it: class name and name."""
        return f"{self.classname}::{self.name}" if self.classname else self.name


@dataclass(frozen=True, slots=True)
class OutcomeTally:
    """How many passed, failed, errored and were skipped."""

    passed: int = 0
    failed: int = 0
    error: int = 0
    skipped: int = 0

    def __add__(self, other: OutcomeTally) -> OutcomeTally:
        return OutcomeTally(
            self.passed + other.passed,
            self.failed + other.failed,
            self.error + other.error,
            self.skipped + other.skipped,
        )

    @property
    def total(self) -> int:
        """All of them."""
        return self.passed + self.failed + self.error + self.skipped

    @property
    def judged(self) -> int:
        """Those that say something about the agent: passed or failed."""
        return self.passed + self.failed

    @property
    def ran(self) -> int:
        """Those that were not skipped."""
        return self.judged + self.error

    @property
    def pass_rate(self) -> float | None:
        """Passed over judged; None where nothing was judged."""
        return self.passed / self.judged if self.judged else None


def tally_outcome(outcome: Outcome) -> OutcomeTally:
    """One outcome as a tally."""
    return _SINGLE_TALLIES[outcome]


_SINGLE_TALLIES: dict[Outcome, OutcomeTally] = {
    "passed": OutcomeTally(passed=1),
    "failed": OutcomeTally(failed=1),
    "error": OutcomeTally(error=1),
    "skipped": OutcomeTally(skipped=1),
}


@dataclass(frozen=True, slots=True)
class PlainTests:
    """The JUnit cases that are no episodes: counts, and the ones that did not pass."""

    tally: OutcomeTally = OutcomeTally()
    failing: tuple[JUnitCase, ...] = ()
    """Failed and errored cases, ordered by title."""
    flaky: tuple[str, ...] = ()
    """Titles of cases that passed only on a rerun."""


@dataclass(frozen=True, slots=True)
class LoadedResults:
    """Everything the result files said, in a fixed order whatever order they were read in."""

    episodes: tuple[EpisodeRecord, ...] = ()
    tests: PlainTests = field(default_factory=PlainTests)
    sessions: tuple[Session, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    findings: tuple[Finding, ...] = ()
    suites: tuple[str, ...] = ()
    """The suites that the results say they are of, sorted; not that of runs without a name."""
