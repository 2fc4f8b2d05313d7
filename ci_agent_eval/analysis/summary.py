"""Summarize episodes into scenarios, pass rates, budget violations and suite totals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple, TypeVar, get_args

from ci_agent_eval.analysis.evaluation_totals import (
    EvaluationTally,
    SideTotals,
    add_tallies,
    sum_side_usage,
    tally_evaluations,
)
from ci_agent_eval.analysis.iteration_counts import (
    AdaptiveStops,
    AdaptiveSummary,
    NotRunCounter,
    build_not_run_counter,
    collect_left_out,
    collect_restrictions,
    collect_stops,
    summarize_adaptive,
)
from ci_agent_eval.analysis.known_scenarios import KnownScenarios
from ci_agent_eval.analysis.loaded_results import (
    EpisodeRecord,
    LoadedResults,
    ModelCallCounts,
    OutcomeTally,
    PlainTests,
    assign_agents,
    tally_outcomes,
)
from ci_agent_eval.analysis.reliability import (
    Reliability,
    compute_wilson_interval,
    estimate_reliability,
)
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.episode import Assertion, Gating, Mode, get_decisive_attempt
from ci_agent_eval.contract.evidence import EVIDENCE_PARTS, EvidencePart
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.contract.measurement import BudgetViolation, compute_latency_statistic
from ci_agent_eval.contract.stops import StopReason

_Number = TypeVar("_Number", int, float)


class FailedAssertion(NamedTuple):
    """A failed assertion of a scenario, with the number of iterations in which it failed."""

    assertion: Assertion
    iterations: int


class ErrorCount(NamedTuple):
    """The reason of an infrastructure error, with the number of iterations that it ended."""

    reason: str
    """Empty: none is known."""
    iterations: int


class ScenarioViolation(NamedTuple):
    """A budget's worst violation over the iterations of a scenario."""

    violation: BudgetViolation
    iterations: int
    """Number of iterations that violated the budget."""


class StopCount(NamedTuple):
    """Number of episodes with a stop reason other than the agent's final answer."""

    reason: StopReason
    episodes: int


class ScenarioSummary(NamedTuple):
    """The results of one scenario, run by one agent."""

    scenario_id: str
    gate: Gating
    file: str | None
    line: int | None
    nodeid: str | None
    min_pass_rate: float | None
    """The scenario's own required pass rate; None: it has none."""
    tally: OutcomeTally
    min_passes: int | None = None
    """Required number of passes, in place of a rate."""
    policy_applies: bool = True
    """Whether an episode sets no requirement, so that the policy's rate applies, too."""
    unjudged_iterations: int = 0
    """Declared iterations that were skipped or not run; without errors."""
    flaky: int = 0
    """Number of iterations that passed only on a retry."""
    failures: tuple[FailedAssertion, ...] = ()
    warnings: tuple[FailedAssertion, ...] = ()
    reasons: tuple[str, ...] = ()
    """Distinct reasons of failed iterations without a failed assertion."""
    unjudged_reasons: tuple[str, ...] = ()
    """Distinct reasons of errors, then of skips."""
    errors: tuple[ErrorCount, ...] = ()
    """Distinct reasons of errors, in order of their first iteration."""
    violations: tuple[ScenarioViolation, ...] = ()
    turns: int = 0
    tool_calls: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    p95_latency_ms: float | None = None
    duration_ms: float | None = None
    """Sum over all attempts, as are tokens and cost."""
    pass_interval: tuple[float, float] | None = None
    """Wilson's 95 % interval of the pass rate; None with fewer than two iterations judged."""
    reliability: tuple[Reliability, ...] = ()
    """pass@k and pass^k; empty with fewer than two iterations judged."""
    agent: str | None = None
    """The tested agent; None: no episode named one."""
    among_agents: bool = False
    """Whether another agent ran the same scenario, too."""
    mode: Mode = "strict"
    """`evaluation` if all of its iterations were evaluations."""
    evaluations: EvaluationTally = EvaluationTally()
    """Tally of the iterations that were evaluations."""
    quarantine: WaiverStatus | None = None
    """Its quarantine entry, expired or not; None: it has none."""
    without_evidence: int = 0
    """Number of iterations that are errors only because evidence is missing."""
    missing_evidence: tuple[EvidencePart, ...] = ()
    """Evidence that is missing in any of these iterations."""
    needs_evidence: bool = True
    """Whether every passed iteration needed evidence to pass."""
    is_unseen: bool = False
    """Whether an agent answered without any request to a model that was seen."""

    adaptive: AdaptiveSummary | None = None
    """Its adaptive iterations; None: their number is fixed."""

    @property
    def rated(self) -> OutcomeTally:
        """Tally of the iterations that count for rates."""
        return self.tally if self.adaptive is None else self.adaptive.rated

    @property
    def in_quarantine(self) -> bool:
        """Whether an unexpired quarantine makes it advisory."""
        return self.quarantine is not None and not self.quarantine.expired


class Totals(NamedTuple):
    """Totals of the suite, including judge models; None: a part was not measured."""

    tokens: int | None = None
    cost_usd: float | None = None
    priced_usd: float | None = None
    """Total cost of the episodes with a known cost; a lower bound if others have none."""
    unpriced: int = 0
    """Number of episodes that ran and have no cost."""
    judge: SideTotals = SideTotals()
    simulated_user: SideTotals = SideTotals()
    """The shares of judges and simulated users in tokens and cost."""
    p95_latency_ms: float | None = None
    turns: int = 0
    tool_calls: int = 0
    wall_time_s: float | None = None
    """None if the suite has no budget for it."""


@dataclass(frozen=True, slots=True)
class SummaryShard:
    """One shard of a suite: `index` of `count`, 1-based."""

    index: int
    count: int
    empty: bool = False
    """Whether the split assigned no test to it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of all results; the same for any order of files and episodes."""

    suite: str = "default"
    scenarios: tuple[ScenarioSummary, ...] = ()
    tally: OutcomeTally = field(default_factory=OutcomeTally)
    """Episodes, each iteration counted once by its last attempt."""
    gated: OutcomeTally = field(default_factory=OutcomeTally)
    """The part of `tally` in required scenarios."""
    calls: ModelCallCounts = field(default_factory=ModelCallCounts)
    tests: PlainTests = field(default_factory=PlainTests)
    evaluations: EvaluationTally = field(default_factory=EvaluationTally)
    """The evaluations of `tally`, with their mean score."""
    totals: Totals = field(default_factory=Totals)
    suite_violations: tuple[BudgetViolation, ...] = ()
    pass_interval: tuple[float, float] | None = None
    """Wilson's 95 % interval of the pass rate of `rated`; None: fewer than two judged."""
    stops: tuple[StopCount, ...] = ()
    """Counts over all attempts, in the order of the contract's stop reasons."""
    deselected: int = 0
    """Number of collected episodes that were deselected."""
    left_out: tuple[str, ...] = ()
    """Scenarios that did not run, as the change has not affected what they declare."""
    restrictions: tuple[str, ...] = ()
    """Options that restricted the run on purpose, such as `-k refund`; empty: whole suite."""
    sources: tuple[SourceFile, ...] = ()
    findings: tuple[Finding, ...] = ()
    known: KnownScenarios | None = None
    """Comparison with the scenario manifest; None: there is none."""
    shard: SummaryShard | None = None
    """The shard summarized alone; None: the whole suite, even if it ran in shards."""

    @property
    def rated(self) -> OutcomeTally:
        """Tally of the episodes that count for rates."""
        return _sum_tallies(scenario.rated for scenario in self.scenarios)

    @property
    def gating_evaluations(self) -> EvaluationTally:
        """The evaluations to which thresholds apply: without quarantined scenarios."""
        if not any(s.in_quarantine and s.evaluations.tally.total for s in self.scenarios):
            return self.evaluations
        return add_tallies(s.evaluations for s in self.scenarios if not s.in_quarantine)

    @property
    def expects_episodes(self) -> bool:
        """Whether an episode file was read."""
        return any(source.kind == "episodes" for source in self.sources)


def summarize_results(
    loaded: LoadedResults, *, suite: str = "default", budgets: SuiteBudgets
) -> Summary:
    """Summarize loaded results. Pure; the order of episodes does not matter."""
    episodes = sorted(assign_agents(loaded.episodes), key=_get_attempt_key)
    final = _find_last_attempts(episodes)
    by_scenario = [list(group) for _, group in groupby(episodes, key=_get_scenario_key)]
    agents = Counter(group[0].scenario_id for group in by_scenario)
    not_run = build_not_run_counter(loaded)
    stops = collect_stops(loaded.sessions)
    scenarios = tuple(
        _summarize_scenario(group, not_run, stops, among_agents=agents[group[0].scenario_id] > 1)
        for group in by_scenario
    )
    tally = _tally_episodes(final)
    totals = _sum_totals(episodes, loaded, budgets)
    return Summary(
        suite=suite,
        scenarios=scenarios,
        tally=tally,
        gated=_sum_tallies(s.tally for s in scenarios if s.gate == "required"),
        calls=sum((record.calls for record in episodes), ModelCallCounts()),
        tests=loaded.tests,
        evaluations=tally_evaluations(record for record in final if record.is_rated),
        totals=totals,
        suite_violations=_find_suite_violations(budgets, totals),
        pass_interval=compute_pass_interval(_sum_tallies(s.rated for s in scenarios)),
        stops=_count_stops(episodes),
        deselected=sum(session.deselected for session in loaded.sessions),
        left_out=collect_left_out(loaded),
        restrictions=collect_restrictions(loaded),
        sources=tuple(sorted(loaded.sources)),
        findings=tuple(sorted(set(loaded.findings))),
        shard=_find_shard(loaded),
    )


def _find_shard(loaded: LoadedResults) -> SummaryShard | None:
    """Return the shard if exactly one was loaded; several together are the whole suite."""
    shards = [session.shard for session in loaded.sessions if session.shard is not None]
    if len(shards) != 1:
        return None
    (shard,) = shards
    return SummaryShard(shard.index, shard.count, shard.empty)


def compute_pass_interval(tally: OutcomeTally) -> tuple[float, float] | None:
    """Return Wilson's interval to six decimals; None for fewer than two iterations."""
    if tally.judged < 2:
        return None
    low, high = compute_wilson_interval(tally.passed, tally.judged)
    return round(low, 6), round(high, 6)


def _get_scenario_key(record: EpisodeRecord) -> tuple[str, str]:
    return (record.scenario_id, record.agent or "")


def _get_attempt_key(record: EpisodeRecord) -> tuple[str, str, str, int, int]:
    return (*_get_iteration_key(record), record.attempt)


def _get_iteration_key(record: EpisodeRecord) -> tuple[str, str, str, int]:
    return (*_get_scenario_key(record), record.nodeid or "", record.iteration)


def _count_stops(episodes: Iterable[EpisodeRecord]) -> tuple[StopCount, ...]:
    counts = Counter(record.stop_reason for record in episodes)
    reasons: tuple[StopReason, ...] = get_args(StopReason)
    return tuple(
        StopCount(reason, counts[reason])
        for reason in reasons
        if counts[reason] and reason != "completed"
    )


def _find_last_attempts(ordered: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    return [
        get_decisive_attempt(list(attempts))
        for _, attempts in groupby(ordered, key=_get_iteration_key)
    ]


def _tally_episodes(episodes: Iterable[EpisodeRecord]) -> OutcomeTally:
    return tally_outcomes(record.outcome for record in episodes)


def _sum_tallies(tallies: Iterable[OutcomeTally]) -> OutcomeTally:
    return sum(tallies, OutcomeTally())


def _summarize_scenario(
    attempts: Sequence[EpisodeRecord],
    not_run: NotRunCounter,
    stops: AdaptiveStops,
    *,
    among_agents: bool,
) -> ScenarioSummary:
    final = _find_last_attempts(attempts)
    first, tally, ran = final[0], _tally_episodes(final), _drop_skipped(attempts)
    counted = [record for record in final if record.is_rated]
    rated = _tally_episodes(counted)
    rates = [record.min_pass_rate for record in final if record.min_pass_rate is not None]
    passes = [record.min_passes for record in final if record.min_passes is not None]
    latencies = [value for record in final for value in record.latencies_ms]
    return ScenarioSummary(
        scenario_id=first.scenario_id,
        gate="required" if any(f.gate == "required" for f in final) else "advisory",
        file=first.file,
        line=first.line,
        nodeid=first.nodeid,
        min_pass_rate=max(rates) if rates else None,
        min_passes=max(passes) if passes else None,
        policy_applies=any(f.min_pass_rate is None and f.min_passes is None for f in final),
        tally=tally,
        unjudged_iterations=tally.skipped + not_run(final),
        flaky=sum(1 for record in final if record.outcome == "passed" and record.attempt > 1),
        failures=_group_failures(final, lambda record: record.failed_assertions),
        warnings=_group_failures(final, lambda record: record.warnings),
        reasons=_collect_reasons(
            f for f in final if not f.failed_assertions and f.outcome == "failed"
        ),
        unjudged_reasons=_collect_reasons(
            [f for f in final if f.outcome == "error"]
            + [f for f in final if f.outcome == "skipped"]
        ),
        errors=tuple(
            ErrorCount(reason, count)
            for reason, count in Counter(
                record.reason or "" for record in final if record.outcome == "error"
            ).items()
        ),
        violations=_find_worst_violations(final),
        turns=sum(record.turns for record in final),
        tool_calls=sum(record.tool_calls for record in final),
        tokens=_sum_if_all_known([record.tokens for record in ran], sum),
        cost_usd=_sum_if_all_known([record.cost_usd for record in ran], math.fsum),
        p95_latency_ms=compute_latency_statistic(latencies, "p95"),
        duration_ms=_sum_if_all_known([record.duration_ms for record in ran], math.fsum),
        pass_interval=compute_pass_interval(rated),
        reliability=estimate_reliability(rated.passed, rated.judged),
        agent=first.agent or None,
        among_agents=among_agents,
        mode="evaluation" if all(record.evaluation for record in final) else "strict",
        evaluations=tally_evaluations(counted),
        is_unseen=any(record.is_unseen for record in final),
        without_evidence=sum(1 for record in final if record.missing_evidence),
        missing_evidence=tuple(
            part for part in EVIDENCE_PARTS if any(part in f.missing_evidence for f in final)
        ),
        needs_evidence=all(f.needs_evidence for f in final if f.outcome == "passed"),
        adaptive=summarize_adaptive(final, stops.get(_get_scenario_key(first))),
    )


def _group_failures(
    episodes: Iterable[EpisodeRecord], pick: Callable[[EpisodeRecord], tuple[Assertion, ...]]
) -> tuple[FailedAssertion, ...]:
    """Group failed assertions by name and location, in order of their first failure."""
    found: dict[tuple[str, str | None, int | None], list[Assertion]] = {}
    for record in episodes:
        seen = {(a.name, a.file, a.line): a for a in reversed(pick(record))}
        for key, assertion in reversed(seen.items()):
            found.setdefault(key, []).append(assertion)
    return tuple(FailedAssertion(group[0], len(group)) for group in found.values())


def _collect_reasons(episodes: Iterable[EpisodeRecord]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(record.reason for record in episodes if record.reason))


def _find_worst_violations(episodes: Iterable[EpisodeRecord]) -> tuple[ScenarioViolation, ...]:
    found: dict[tuple[str, str | None, bool], list[BudgetViolation]] = {}
    for record in episodes:
        # A skipped episode used nothing, so its budgets are not judged.
        for violation in record.violations if record.outcome != "skipped" else ():
            key = (violation.budget, violation.statistic, violation.hard)
            found.setdefault(key, []).append(violation)
    return tuple(
        ScenarioViolation(max(group, key=_compute_excess), len(group)) for group in found.values()
    )


def _compute_excess(violation: BudgetViolation) -> float:
    """Return the excess over the limit; infinite if it was not measured."""
    return math.inf if violation.observed is None else violation.observed - violation.limit


def _drop_skipped(episodes: Iterable[EpisodeRecord]) -> list[EpisodeRecord]:
    return [record for record in episodes if record.outcome != "skipped"]


def _sum_if_all_known(
    values: Sequence[_Number | None], add: Callable[[Iterable[_Number]], _Number]
) -> _Number | None:
    """Return the sum; None if there are no values or one is unknown.

    Use `math.fsum` for money and time: neither the order nor Python's version changes a digit.
    """
    known = [value for value in values if value is not None]
    return add(known) if known and len(known) == len(values) else None


def _sum_totals(
    attempts: Sequence[EpisodeRecord], loaded: LoadedResults, budgets: SuiteBudgets
) -> Totals:
    """Add up all attempts: retries cost, too, whichever attempt counts."""
    ran = _drop_skipped(attempts)
    # An episode that was skipped late may have been judged before, which has a cost.
    judge = sum_side_usage(record.judge for record in attempts)
    user = sum_side_usage(record.simulated_user for record in attempts)
    costs = [record.cost_usd for record in ran if record.cost_usd is not None]
    spent = math.fsum([*costs, judge.cost_usd, user.cost_usd])
    tokens = _sum_if_all_known([record.tokens for record in ran], sum)
    unpriced = len({_get_iteration_key(record) for record in ran if record.cost_usd is None})
    wall_times = [session.wall_time_s for session in loaded.sessions]
    # Wall time differs in each run, so only reports with a budget for it contain it.
    wall_time_s = _sum_if_all_known(wall_times, math.fsum) if budgets.total_wall_time_s else None
    return Totals(
        tokens=None if tokens is None or user.untold else tokens + judge.tokens + user.tokens,
        cost_usd=spent if costs and not (unpriced or judge.unpriced or user.unpriced) else None,
        priced_usd=spent if costs or judge.cost_usd or user.cost_usd else None,
        unpriced=unpriced,
        judge=judge,
        simulated_user=user,
        p95_latency_ms=compute_latency_statistic([v for f in ran for v in f.latencies_ms], "p95"),
        turns=sum(record.turns for record in ran),
        tool_calls=sum(record.tool_calls for record in ran),
        wall_time_s=wall_time_s,
    )


def _find_suite_violations(budgets: SuiteBudgets, totals: Totals) -> tuple[BudgetViolation, ...]:
    observed = (
        (kind, budget, getattr(totals, kind.total)) for kind, budget in budgets.iter_named()
    )
    return tuple(
        BudgetViolation(kind.name, budget.limit, used, budget.hard, None, kind.unit)
        for kind, budget, used in observed
        if used is None or used > budget.limit
    )
