"""Folding episodes into scenarios, pass rates, violations and suite totals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypeVar

from ci_agent_eval.contract.budgets import Budget, SuiteBudgets
from ci_agent_eval.contract.episode import Assertion, Gating
from ci_agent_eval.contract.findings import Finding, SourceFile
from ci_agent_eval.contract.measure import BudgetViolation, latency_statistic
from ci_agent_eval.facts import Calls, EpisodeFacts, Loaded, PlainTests, Tally, tally_of

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class FailedAssertion:
    """A failed assertion of a scenario, and in how many of its iterations it failed."""

    assertion: Assertion
    iterations: int


@dataclass(frozen=True, slots=True)
class ScenarioViolation:
    """A budget's worst violation over the iterations of a scenario."""

    violation: BudgetViolation
    iterations: int
    """In how many iterations the budget was violated."""


@dataclass(frozen=True, slots=True)
class ScenarioSummary:
    """What the iterations of one scenario came to."""

    scenario_id: str
    gate: Gating
    file: str | None
    line: int | None
    nodeid: str | None
    min_pass_rate: float | None
    """The scenario's own required pass rate; None: it has none."""
    tally: Tally
    min_passes: int | None = None
    """The passes the scenario needs, in place of a rate."""
    policy_applies: bool = True
    """Whether an episode of it brings no requirement of its own, so that the policy's holds too."""
    flaky: int = 0
    """Iterations that passed only on a retry."""
    failures: tuple[FailedAssertion, ...] = ()
    warnings: tuple[FailedAssertion, ...] = ()
    reasons: tuple[str, ...] = ()
    """Why iterations failed that have no failed assertion; each once."""
    unjudged_reasons: tuple[str, ...] = ()
    """Why iterations errored, then why iterations were skipped; each once."""
    violations: tuple[ScenarioViolation, ...] = ()
    turns: int = 0
    tool_calls: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    p95_latency_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """The suite as a whole; None where something was not measured."""

    tokens: int | None = None
    cost_usd: float | None = None
    priced_usd: float | None = None
    """What the episodes that have a cost came to; less than the whole while some have none."""
    unpriced: int = 0
    """Episodes that ran and have no cost."""
    p95_latency_ms: float | None = None
    turns: int = 0
    tool_calls: int = 0
    wall_time_s: float | None = None
    """Only where the suite has a budget for it."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything the results say, folded; the same for any order of files and episodes."""

    suite: str = "default"
    scenarios: tuple[ScenarioSummary, ...] = ()
    tally: Tally = field(default_factory=Tally)
    """Episodes, each iteration counted once by its last attempt."""
    gated: Tally = field(default_factory=Tally)
    """The part of `tally` that belongs to required scenarios."""
    calls: Calls = field(default_factory=Calls)
    tests: PlainTests = field(default_factory=PlainTests)
    totals: Totals = field(default_factory=Totals)
    suite_violations: tuple[BudgetViolation, ...] = ()
    deselected: int = 0
    """Episodes that were there and not selected to run."""
    sources: tuple[SourceFile, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def expects_episodes(self) -> bool:
        """Whether a file was read that should hold episodes."""
        return any(source.kind == "episodes" for source in self.sources)


def summarize(loaded: Loaded, *, suite: str = "default", budgets: SuiteBudgets) -> Summary:
    """Fold what was loaded; pure, and independent of any order."""
    episodes = sorted(loaded.episodes, key=_order)
    final = _last_attempts(episodes)
    by_scenario = [
        list(group) for _, group in groupby(episodes, key=lambda facts: facts.scenario_id)
    ]
    scenarios = tuple(_scenario(group) for group in by_scenario)
    totals = _totals(episodes, loaded, budgets)
    return Summary(
        suite=suite,
        scenarios=scenarios,
        tally=_tally(final),
        gated=_sum(s.tally for s in scenarios if s.gate == "required"),
        calls=sum((facts.calls for facts in episodes), Calls()),
        tests=loaded.tests,
        totals=totals,
        suite_violations=_suite_violations(budgets, totals),
        deselected=sum(session.deselected for session in loaded.sessions),
        sources=tuple(sorted(loaded.sources)),
        findings=tuple(sorted(set(loaded.findings))),
    )


def _order(facts: EpisodeFacts) -> tuple[str, str, int, int]:
    return (facts.scenario_id, facts.nodeid or "", facts.iteration, facts.attempt)


def _iteration(facts: EpisodeFacts) -> tuple[str, str, int]:
    return (facts.scenario_id, facts.nodeid or "", facts.iteration)


def _last_attempts(ordered: Sequence[EpisodeFacts]) -> list[EpisodeFacts]:
    return [_decisive(list(attempts)) for _, attempts in groupby(ordered, key=_iteration)]


def _decisive(attempts: Sequence[EpisodeFacts]) -> EpisodeFacts:
    """Return the last attempt that was judged: a retry that skips or errs erases no failure."""
    judged = [facts for facts in attempts if facts.outcome in ("passed", "failed")]
    return (judged or attempts)[-1]


def _tally(episodes: Iterable[EpisodeFacts]) -> Tally:
    return _sum(tally_of(facts.outcome) for facts in episodes)


def _sum(tallies: Iterable[Tally]) -> Tally:
    return sum(tallies, Tally())


def _scenario(attempts: Sequence[EpisodeFacts]) -> ScenarioSummary:
    final = _last_attempts(attempts)
    first = final[0]
    rates = [facts.min_pass_rate for facts in final if facts.min_pass_rate is not None]
    passes = [facts.min_passes for facts in final if facts.min_passes is not None]
    latencies = [value for facts in final for value in facts.latencies_ms]
    return ScenarioSummary(
        scenario_id=first.scenario_id,
        gate="required" if any(f.gate == "required" for f in final) else "advisory",
        file=first.file,
        line=first.line,
        nodeid=first.nodeid,
        min_pass_rate=max(rates) if rates else None,
        min_passes=max(passes) if passes else None,
        policy_applies=any(f.min_pass_rate is None and f.min_passes is None for f in final),
        tally=_tally(final),
        flaky=sum(1 for facts in final if facts.outcome == "passed" and facts.attempt > 1),
        failures=_failures(final, lambda facts: facts.failed_assertions),
        warnings=_failures(final, lambda facts: facts.warnings),
        reasons=_reasons(f for f in final if not f.failed_assertions and f.outcome == "failed"),
        unjudged_reasons=_reasons(
            [f for f in final if f.outcome == "error"]
            + [f for f in final if f.outcome == "skipped"]
        ),
        violations=_worst_violations(final),
        turns=sum(facts.turns for facts in final),
        tool_calls=sum(facts.tool_calls for facts in final),
        tokens=_all_or_none([facts.tokens for facts in _ran(attempts)]),
        cost_usd=_all_or_none([facts.cost_usd for facts in _ran(attempts)]),
        p95_latency_ms=latency_statistic(latencies, "p95"),
    )


def _failures(
    episodes: Iterable[EpisodeFacts], pick: Callable[[EpisodeFacts], tuple[Assertion, ...]]
) -> tuple[FailedAssertion, ...]:
    """Group failed assertions by name and place, in the order in which they first failed."""
    found: dict[tuple[str, str | None, int | None], list[Assertion]] = {}
    for facts in episodes:
        seen = {(a.name, a.file, a.line): a for a in reversed(pick(facts))}
        for key, assertion in reversed(seen.items()):
            found.setdefault(key, []).append(assertion)
    return tuple(FailedAssertion(group[0], len(group)) for group in found.values())


def _reasons(episodes: Iterable[EpisodeFacts]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(facts.reason for facts in episodes if facts.reason))


def _worst_violations(episodes: Iterable[EpisodeFacts]) -> tuple[ScenarioViolation, ...]:
    found: dict[tuple[str, str | None, bool], list[BudgetViolation]] = {}
    for facts in episodes:
        # An episode that never ran used nothing; its outcome says so already.
        for violation in facts.violations if facts.outcome != "skipped" else ():
            key = (violation.budget, violation.statistic, violation.hard)
            found.setdefault(key, []).append(violation)
    return tuple(ScenarioViolation(max(group, key=_excess), len(group)) for group in found.values())


def _excess(violation: BudgetViolation) -> float:
    """Order violations by how far they are over; one that was not measured comes first."""
    return math.inf if violation.observed is None else violation.observed - violation.limit


def _ran(episodes: Iterable[EpisodeFacts]) -> list[EpisodeFacts]:
    return [facts for facts in episodes if facts.outcome != "skipped"]


def _all_or_none(values: Sequence[Number | None]) -> Number | None:
    """Return the sum; None where there is nothing or where a part is unknown."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    return sum(known)


def _totals(attempts: Sequence[EpisodeFacts], loaded: Loaded, budgets: SuiteBudgets) -> Totals:
    """Add up every attempt: a retry costs what it costs, whichever attempt counts."""
    ran = _ran(attempts)
    costs = [facts.cost_usd for facts in ran if facts.cost_usd is not None]
    walls = [session.wall_time_s for session in loaded.sessions]
    # It differs run by run, so it is in a report only where it was asked for.
    wall_time_s = _all_or_none(walls) if budgets.total_wall_time_s else None
    return Totals(
        tokens=_all_or_none([facts.tokens for facts in ran]),
        cost_usd=_all_or_none([facts.cost_usd for facts in ran]),
        priced_usd=sum(costs) if costs else None,
        unpriced=sum(1 for facts in ran if facts.cost_usd is None),
        p95_latency_ms=latency_statistic([v for f in ran for v in f.latencies_ms], "p95"),
        turns=sum(facts.turns for facts in ran),
        tool_calls=sum(facts.tool_calls for facts in ran),
        wall_time_s=wall_time_s,
    )


def _suite_violations(budgets: SuiteBudgets, totals: Totals) -> tuple[BudgetViolation, ...]:
    pairs: tuple[tuple[str, Budget | None, float | None, str | None], ...] = (
        ("total_cost_usd", budgets.total_cost_usd, totals.cost_usd, None),
        ("total_tokens", budgets.total_tokens, totals.tokens, None),
        ("total_wall_time_s", budgets.total_wall_time_s, totals.wall_time_s, "s"),
    )
    return tuple(
        BudgetViolation(name, budget.limit, observed, budget.hard, None, unit)
        for name, budget, observed, unit in pairs
        if budget is not None and (observed is None or observed > budget.limit)
    )
