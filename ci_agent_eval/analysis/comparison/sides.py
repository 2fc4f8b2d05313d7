"""One side of a comparison: a run's scenarios and the episodes behind them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.analysis.agent_names import with_agents
from ci_agent_eval.analysis.comparison.conditions import Kinds, conditions_of, matches, said
from ci_agent_eval.analysis.comparison.model import Side
from ci_agent_eval.analysis.comparison.pool import Pool
from ci_agent_eval.analysis.loaded_results import EpisodeFacts, Loaded, Tally, tally_of
from ci_agent_eval.analysis.summary import ScenarioSummary, summarize
from ci_agent_eval.contract.attempts import get_decisive_attempt
from ci_agent_eval.contract.budgets import SuiteBudgets

ScenarioKey = tuple[str, str]
"""Scenario id and agent; an empty agent where none is named."""

IsPassing = Callable[[ScenarioSummary], bool | None]
"""Whether a scenario meets its pass rate; None where it was not judged."""

RequiredShare = Callable[[ScenarioSummary], float]
"""Share of a scenario's iterations that must pass if it is required."""


@dataclass(frozen=True, slots=True)
class RunSide:
    """A scenario in one run."""

    summary: ScenarioSummary
    """Of all its iterations."""
    episodes: tuple[EpisodeFacts, ...]
    conditions: Kinds
    tally: Tally
    """Of the iterations that are compared."""
    aside: tuple[EpisodeFacts, ...] = ()
    """The judged iterations that are not, because the other side has none under their
    conditions."""


def sides_of(
    scenarios: Iterable[ScenarioSummary], episodes: Iterable[EpisodeFacts]
) -> dict[ScenarioKey, RunSide]:
    """Put each scenario of a run beside its episodes."""
    grouped: dict[ScenarioKey, list[EpisodeFacts]] = defaultdict(list)
    for facts in with_agents(episodes):
        grouped[facts.scenario_id, facts.agent or ""].append(facts)
    return {
        key_of(scenario): RunSide(
            scenario,
            tuple(grouped[key_of(scenario)]),
            conditions_of(grouped[key_of(scenario)]),
            scenario.tally,
        )
        for scenario in scenarios
    }


def narrowed(run: RunSide, kinds: Kinds, across: frozenset[str]) -> RunSide:
    """Return a run without the iterations that were judged under other conditions than these."""
    if all(matches(kind, kinds, across) for kind in run.conditions):
        return run
    iterations: dict[tuple[str, int], list[EpisodeFacts]] = defaultdict(list)
    for facts in sorted(run.episodes, key=lambda facts: facts.attempt):
        iterations[facts.nodeid or "", facts.iteration].append(facts)
    kept: list[EpisodeFacts] = []
    aside: list[EpisodeFacts] = []
    tally = Tally()
    for attempts in iterations.values():
        final = get_decisive_attempt(attempts)
        if final.outcome in {"passed", "failed"} and not matches(said(final), kinds, across):
            aside.append(final)
        else:
            kept += attempts
            tally += tally_of(final.outcome)
    return replace(run, episodes=tuple(kept), tally=tally, aside=tuple(aside))


def sides_of_run(episodes: Sequence[EpisodeFacts]) -> dict[ScenarioKey, RunSide]:
    """Fold a run of the baseline."""
    summary = summarize(Loaded(episodes=tuple(episodes)), budgets=SuiteBudgets())
    return sides_of(summary.scenarios, episodes)


def key_of(scenario: ScenarioSummary) -> ScenarioKey:
    """Return what a scenario is known by."""
    return scenario.scenario_id, scenario.agent or ""


def demand(run: RunSide, required_share: RequiredShare) -> float | None:
    """Return the share that must pass, by the tests themselves; None: they are advisory.

    A quarantine has a day on which it ends, and is no change of what the tests demand.
    """
    is_required = any(facts.gate == "required" for facts in run.episodes)
    return required_share(run.summary) if is_required else None


def side(runs: Sequence[RunSide], pool: Pool, is_passing: IsPassing) -> Side:
    """Return the figures of a scenario's pool of runs; it passes as the latest judged one did."""
    verdicts = (is_passing(run.summary) for run in runs)
    return Side(
        passed=pool.tally.passed,
        judged=pool.tally.judged,
        passing=next((verdict for verdict in verdicts if verdict is not None), None),
        cost_usd=pool.figure("cost_usd"),
        tokens=pool.figure("tokens"),
        tool_calls=pool.figure("tool_calls"),
        p95_latency_ms=pool.figure("p95_latency_ms"),
        set_aside=sum(len(run.aside) for run in runs),
        flaky=pool.flaky,
        latest_judged=runs[0].tally.judged,
    )
