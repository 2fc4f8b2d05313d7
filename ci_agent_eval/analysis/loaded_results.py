"""Loaded results: compact records of episodes and JUnit cases.

A trajectory may be large and only a few figures of it are needed, so a record keeps only those:
memory grows with the number of episodes, not with the length of their conversations.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
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
    """Numbers of agent replies by source: a model, a recording or a script."""

    live: int = 0
    replayed: int = 0
    scripted: int = 0
    misses: int = 0
    """Calls without a matching recording."""
    rate_limited: int = 0
    """Number of rate-limit responses of model APIs."""

    def __add__(self, other: ModelCallCounts) -> ModelCallCounts:
        return ModelCallCounts(
            self.live + other.live,
            self.replayed + other.replayed,
            self.scripted + other.scripted,
            self.misses + other.misses,
            self.rate_limited + other.rate_limited,
        )


class EvaluationScore(NamedTuple):
    """The score of an evaluation, with its numbers of assertions."""

    score: float
    """Mean score of its assertions, 0 to 1."""
    assertions: int
    assertions_passed: int


class CheckRecord(NamedTuple):
    """A check that can fail its episode."""

    name: str
    score: float
    threshold: float | None


class EpisodeRecord(NamedTuple):
    """An episode reduced to the data that summary, gate and report need."""

    scenario_id: str
    nodeid: str | None
    file: str | None
    line: int | None
    iteration: int
    iterations: int
    """Number of iterations that its test declares; the maximum of adaptive ones."""
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
    conditions: Conditions
    agent: str | None = None
    model: str | None = None
    stop_reason: StopReason | None = None
    duration_ms: float | None = None
    was: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    """Names of the called tools, in order."""
    evaluation: EvaluationScore | None = None
    """None: a strict episode."""
    case: str | None = None
    """The parameters of its test, if all cases of the test are the scenario."""
    raised: bool = False
    """Whether a failed evaluation's test failed too: its assertions do not fail it."""
    judge: SideUsage | None = None
    """None: no model judged it."""
    simulated_user: SideUsage | None = None
    """None: no model simulated the user."""
    missing_evidence: tuple[EvidencePart, ...] = ()
    """Missing evidence, which made a passing episode an error."""
    needs_evidence: bool = True
    """Whether it passes only with evidence."""
    minimum_iterations: int | None = None
    """Adaptive iterations that always run; None: all run."""
    checks: tuple[CheckRecord, ...] = ()
    hard_limits: tuple[tuple[str, float], ...] = ()
    """Names and limits of its hard budgets."""
    allowed_stops: tuple[StopReason, ...] = ()
    is_unseen: bool = False
    """Whether its agent answered and no request to a model was seen."""

    @property
    def key(self) -> tuple[str, str, int, int]:
        """Identity and sort key: scenario, node id, iteration, attempt; as `Episode.key`."""
        return self.scenario_id, self.nodeid or "", self.iteration, self.attempt

    @property
    def is_rated(self) -> bool:
        """Whether it counts for shown rates and for the suite.

        Adaptive iterations after the minimum do not: the outcomes decide how many there are, which
        biases their rate.
        """
        return self.minimum_iterations is None or self.iteration <= self.minimum_iterations


_DERIVED = frozenset({"tokens", "cost_usd", "conditions"})
_COPIED = tuple(
    name for name in EpisodeRecord._fields if name in Episode.model_fields and name not in _DERIVED
)
"""Fields that an episode has, too."""


def build_episode_record(episode: Episode) -> EpisodeRecord:
    """Reduce an episode to its record."""
    trajectory = episode.trajectory
    copied: dict[str, Any] = {name: getattr(episode, name) for name in _COPIED}
    return EpisodeRecord(
        **copied,
        failed_assertions=episode.failed_assertions,
        warnings=tuple(a for a in episode.assertions if not a.passed and a.severity == "warning"),
        violations=episode.violations,
        turns=episode.trajectory_summary.steps_count,
        tool_calls=episode.trajectory_summary.tool_calls_count,
        tokens=_count_tokens(episode),
        cost_usd=_find_cost(episode),
        latencies_ms=trajectory.latencies_ms if trajectory else (),
        calls=_intern_calls(_count_model_calls(episode)),
        conditions=_intern_conditions(episode.conditions),
        tools=_intern_tools(_list_tools(trajectory)) if trajectory else (),
        evaluation=_score_evaluation(episode) if episode.mode == "evaluation" else None,
        needs_evidence=episode.evidence != "none",
        checks=_intern_checks(tuple(_iterate_checks(episode))),
        hard_limits=tuple((n, b.limit) for n, b in episode.budgets.iter_named() if b.hard),
        is_unseen=episode.is_unseen,
    )


def _score_evaluation(episode: Episode) -> EvaluationScore:
    passed = sum(1 for assertion in episode.assertions if assertion.passed)
    return EvaluationScore(score_episode(episode), len(episode.assertions), passed)


def _iterate_checks(episode: Episode) -> Iterator[CheckRecord]:
    for one in episode.assertions:
        if one.severity == "error":
            yield CheckRecord(one.name, one.score or 0.0, one.threshold)


def _list_tools(trajectory: Trajectory) -> tuple[str, ...]:
    return tuple(call.name for turn in trajectory.agent_turns for call in turn.tool_calls)


_T = TypeVar("_T", ModelCallCounts, Conditions, tuple[str, ...], tuple[CheckRecord, ...])


def _build_interner() -> Callable[[_T], _T]:
    """Return a function that reuses equal values: thousands of episodes share a few."""
    return lru_cache(4096)(lambda value: value)


_intern_calls: Callable[[ModelCallCounts], ModelCallCounts] = _build_interner()
_intern_conditions: Callable[[Conditions], Conditions] = _build_interner()
_intern_tools: Callable[[tuple[str, ...]], tuple[str, ...]] = _build_interner()
_intern_checks: Callable[[tuple[CheckRecord, ...]], tuple[CheckRecord, ...]] = _build_interner()


def _count_tokens(episode: Episode) -> int | None:
    measured = episode.trajectory.total_tokens if episode.trajectory else None
    if measured is None and episode.tokens is not None:
        return episode.tokens.total
    budget = episode.budgets.token_usage
    return (
        measured
        if measured is not None or budget is None or budget.used is None
        else int(budget.used)
    )


def _find_cost(episode: Episode) -> float | None:
    measured = episode.trajectory.cost_usd if episode.trajectory else None
    if measured is None and episode.cost_usd is not None:
        return episode.cost_usd
    budget = episode.budgets.cost_usd
    return measured if measured is not None or budget is None else budget.used


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
    """A case of a JUnit file, as its producer meant it. A tuple, as a file may have 100,000."""

    classname: str
    name: str
    outcome: Outcome
    message: str | None = None
    """First line of the failure, error or skip."""
    detail: str | None = None
    """Text of the failure, usually a traceback."""
    file: str | None = None
    line: int | None = None
    flaky: bool = False
    """Whether it failed first and passed on a rerun in the same file."""
    nodeid: str | None = None
    """pytest's node id, if our plugin wrote it as a property."""

    @property
    def title(self) -> str:
        """Class name and name, as reports show the case; a repeated one (jest, mocha) once."""
        if self.name.endswith(self.classname):
            return self.name
        return f"{self.classname}::{self.name}"


@dataclass(frozen=True, slots=True)
class OutcomeTally:
    """Numbers of passed, failed, errored and skipped cases."""

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
        """Number of all cases."""
        return self.passed + self.failed + self.error + self.skipped

    @property
    def judged(self) -> int:
        """Number of cases with a verdict on the agent: passed or failed."""
        return self.passed + self.failed

    @property
    def ran(self) -> int:
        """Number of cases that were not skipped."""
        return self.judged + self.error

    @property
    def pass_rate(self) -> float | None:
        """Passed over judged; None: nothing was judged."""
        return self.passed / self.judged if self.judged else None


def tally_outcomes(outcomes: Iterable[Outcome]) -> OutcomeTally:
    """Count outcomes."""
    count = list(outcomes).count
    return OutcomeTally(count("passed"), count("failed"), count("error"), count("skipped"))


@dataclass(frozen=True, slots=True)
class PlainTests:
    """The JUnit cases without an episode: their tally, and the failing and flaky cases."""

    tally: OutcomeTally = OutcomeTally()
    failing: tuple[JUnitCase, ...] = ()
    """Failed and errored cases, ordered by title."""
    flaky: tuple[str, ...] = ()
    """Titles of cases that passed only on a rerun."""


class ConfirmationRuns(NamedTuple):
    """The runs of base and head that were made in turn, to confirm a drop."""

    base: tuple[EpisodeRecord, ...]
    head: tuple[EpisodeRecord, ...]
    planned: Mapping[str, int]
    """Iterations of each scenario on each side."""


@dataclass(frozen=True, slots=True)
class LoadedResults:
    """The content of all result files, in an order that does not depend on the reading order."""

    episodes: tuple[EpisodeRecord, ...] = ()
    tests: PlainTests = field(default_factory=PlainTests)
    sessions: tuple[Session, ...] = ()
    sources: tuple[SourceFile, ...] = ()
    findings: tuple[Finding, ...] = ()
    suites: tuple[str, ...] = ()
    """Sorted suite names in the results, except of unnamed runs."""
    confirmation: ConfirmationRuns | None = None


def assign_agents(episodes: Iterable[EpisodeRecord]) -> Iterable[EpisodeRecord]:
    """Assign an agent to each episode without one, if there is only one candidate.

    The candidate is the agent of other attempts at the same test, or else of the scenario.
    An episode that passed without an agent stays unassigned: its pass must not count for one.
    """
    listed = list(episodes)
    named: dict[tuple[str, str | None], set[str]] = defaultdict(set)
    for record in listed:
        if record.agent:
            named[record.scenario_id, record.nodeid].add(record.agent)
            named[record.scenario_id, None].add(record.agent)
    return [_assign_agent(record, named) for record in listed] if named else listed


def _assign_agent(
    record: EpisodeRecord, named: Mapping[tuple[str, str | None], set[str]]
) -> EpisodeRecord:
    if record.agent or record.outcome == "passed":
        return record
    for nodeid in (record.nodeid, None):
        candidates = named.get((record.scenario_id, nodeid), ())
        if len(candidates) == 1:
            return record._replace(agent=next(iter(candidates)))
    return record


ScenarioKey = tuple[str, str]
"""Scenario id and agent; an empty agent if none is named."""


def group_by_scenario(episodes: Iterable[EpisodeRecord]) -> dict[ScenarioKey, list[EpisodeRecord]]:
    """Return the episodes of each scenario, with agents assigned."""
    grouped: dict[ScenarioKey, list[EpisodeRecord]] = defaultdict(list)
    for record in assign_agents(episodes):
        grouped[record.scenario_id, record.agent or ""].append(record)
    return grouped
