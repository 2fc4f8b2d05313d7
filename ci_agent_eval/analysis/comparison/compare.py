"""Holding a run against the runs of the base."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from ci_agent_eval.analysis.comparison.conditions import (
    ConditionSets,
    collect_conditions,
    find_common_conditions,
    list_condition_differences,
)
from ci_agent_eval.analysis.comparison.divergence import find_divergence, find_typical_steps
from ci_agent_eval.analysis.comparison.metric_changes import (
    MetricChanges,
    PoolPair,
    compute_metric_changes,
)
from ci_agent_eval.analysis.comparison.model import (
    Baseline,
    ComparePolicy,
    Comparison,
    ConditionDifference,
    Divergence,
    ScenarioChange,
    ScenarioComparison,
    ScenarioMetrics,
)
from ci_agent_eval.analysis.comparison.pool import (
    IterationPool,
    find_distinct_runs,
    pool_iterations,
)
from ci_agent_eval.analysis.comparison.regressions import decide_regressions
from ci_agent_eval.analysis.comparison.scenario_runs import (
    IsPassing,
    RequiredShare,
    ScenarioKey,
    ScenarioRun,
    compute_demand,
    compute_metrics,
    group_scenario_runs,
    keep_comparable,
    summarize_baseline_run,
)
from ci_agent_eval.analysis.comparison.statistics import compute_losses_p_value
from ci_agent_eval.analysis.comparison.trend import build_trend
from ci_agent_eval.analysis.loaded_results import EpisodeRecord
from ci_agent_eval.analysis.summary import Summary


def compare_runs(
    summary: Summary,
    episodes: Sequence[EpisodeRecord],
    baseline: Baseline,
    *,
    is_passing: IsPassing,
    required_share: RequiredShare,
    policy: ComparePolicy,
) -> Comparison:
    """Compare a run, folded in `summary` from `episodes`, with the runs of the base.

    The same for any order of episodes. Raises InputError where NumPy is missing.
    """
    after = _RunScenarios(group_scenario_runs(summary.scenarios, episodes))
    runs = [_RunScenarios(summarize_baseline_run(run.episodes)) for run in baseline.runs]
    counted = [runs[place] for place in find_distinct_runs(baseline.runs)]
    paired = _ScenarioPairing(counted, after, is_passing, required_share, policy)
    scenarios = decide_regressions(paired.all(), policy)
    lost = sum(1 for s in scenarios if s.change == "newly_failing")
    won = sum(1 for s in scenarios if s.change == "fixed")
    return Comparison(
        label=baseline.label,
        runs=len(baseline.runs),
        level=policy.level,
        scenarios=tuple(sorted(scenarios, key=lambda s: (s.scenario_id, s.agent or ""))),
        suite_p_value=compute_losses_p_value(lost, won),
        copies=len(runs) - len(counted),
        replays=sum(before.repeated for before, _ in paired.pools.values()),
        trend=build_trend(
            baseline.runs,
            [[side.summary for side in run.sides.values()] for run in runs],
            summary.scenarios,
        ),
        **_compare_metrics(scenarios, paired.pools, policy),
    )


def _compare_metrics(
    scenarios: Sequence[ScenarioComparison],
    pools: Mapping[ScenarioKey, PoolPair],
    policy: ComparePolicy,
) -> MetricChanges:
    sides = [
        ((s.before, s.after), pools[key])
        for s in scenarios
        if (key := (s.scenario_id, s.agent or "")) in pools and s.before and s.after
    ]
    allowed = {
        "cost_usd": policy.max_cost_increase,
        "p95_latency_ms": policy.max_latency_increase,
    }
    return compute_metric_changes([pair for pair, _ in sides], [pool for _, pool in sides], allowed)


@dataclass(frozen=True)
class _RunScenarios:
    """The scenarios of a run, and the agents of each."""

    sides: Mapping[ScenarioKey, ScenarioRun]

    @cached_property
    def agents(self) -> Mapping[str, Sequence[ScenarioKey]]:
        """The keys that share a scenario's name."""
        found: dict[str, list[ScenarioKey]] = defaultdict(list)
        for key in self.sides:
            found[key[0]].append(key)
        return dict(found)


@dataclass(frozen=True)
class _ScenarioPairing:
    """The scenarios of this run, each beside its own past."""

    runs: Sequence[_RunScenarios]
    after: _RunScenarios
    is_passing: IsPassing
    required_share: RequiredShare
    policy: ComparePolicy
    pools: dict[ScenarioKey, PoolPair] = field(default_factory=dict)
    """What each scenario that is compared was compared by."""

    def all(self) -> Sequence[ScenarioComparison]:
        """Return every scenario of this run, and those that only the latest of the base has."""
        present: list[ScenarioComparison] = []
        taken: set[ScenarioKey] = set()
        for key, run in self.after.sides.items():
            names = self._names(key, run)
            known = [(found, self._before(found, key, names)) for found in self.runs]
            past = [(before, found.sides[before]) for found, before in known if before]
            compared = self._scenario(key, run, [before for _, before in past])
            latest = past[0][0][0] if past else key[0]
            renamed = latest if latest != key[0] else None
            # What an older run knew it by says nothing of what the latest one had.
            own = {before for _, before in known[:1] if before}
            taken |= own
            demanded = [compute_demand(self.runs[0].sides[key], self.required_share) for key in own]
            present.append(
                replace(
                    compared,
                    renamed_from=renamed,
                    demand=compute_demand(run, self.required_share),
                    demand_before=demanded[0] if demanded else None,
                )
            )
        return [*present, *self._iterate_vanished(taken)]

    def _names(self, key: ScenarioKey, run: ScenarioRun) -> tuple[str, ...]:
        """Return the names a scenario is known by, the present one first.

        One that lives on, or lived beside the present one in some run, is another scenario's.
        """
        former = sorted({name for record in run.episodes for name in record.was})
        return key[0], *(name for name in former if not self._is_another(name, key[0]))

    def _is_another(self, former: str, present: str) -> bool:
        beside = (found.agents for found in self.runs)
        return former in self.after.agents or any(
            former in agents and present in agents for agents in beside
        )

    def _before(
        self, found: _RunScenarios, key: ScenarioKey, names: Sequence[str]
    ) -> ScenarioKey | None:
        """Return what a run of the base knows a scenario by; None: it has it not."""
        for name in names:
            candidate = (name, key[1])
            if candidate not in found.sides:
                candidate = self._find_lone(found, key, name)
            if candidate in found.sides:
                return candidate
        return None

    def _find_lone(self, found: _RunScenarios, key: ScenarioKey, name: str) -> ScenarioKey:
        """Return the only agent's on both sides: one that is called otherwise is the same."""
        now, before = self.after.agents[key[0]], found.agents.get(name, ())
        return before[0] if len(now) == len(before) == 1 else key

    def _scenario(
        self, key: ScenarioKey, run: ScenarioRun, past: Sequence[ScenarioRun]
    ) -> ScenarioComparison:
        after = compute_metrics([run], _pool_runs([run]), self.is_passing)
        compared = ScenarioComparison(
            scenario_id=key[0],
            agent=key[1] or None,
            change="new",
            required=run.summary.gate == "required",
            after=after,
            flaky=run.summary.flaky > 0,
        )
        if not past:
            return compared
        across = self.policy.across
        old, new = find_common_conditions(past[0].conditions, run.conditions, across)
        if not new:
            found = list_condition_differences(past[0].conditions, run.conditions, across)
            before = compute_metrics(past[:1], _pool_runs(past[:1]), self.is_passing)
            return replace(compared, change="not_comparable", differences=found, before=before)
        now = keep_comparable(run, old, across)
        comparable = self._keep_comparable(past, new)
        pools = self.pools[key] = _pool_runs(comparable), _pool_runs([now])
        before = compute_metrics(comparable, pools[0], self.is_passing)
        after = compute_metrics([now], pools[1], self.is_passing)
        return replace(
            compared,
            change=_classify_change(before, after),
            before=before,
            after=after,
            newly_over=_find_newly_over(comparable[0], run),
            differences=self._set_aside(comparable[0], now),
            divergence=self._divergence(comparable[0], now),
        )

    def _keep_comparable(
        self, past: Sequence[ScenarioRun], kinds: ConditionSets
    ) -> Sequence[ScenarioRun]:
        """Return what of each run of the base was made under such conditions; all of the latest.

        A run without any such iteration is of other times, and does not count.
        """
        narrow = [keep_comparable(run, kinds, self.policy.across) for run in past]
        return [narrow[0], *(run for run in narrow[1:] if run.tally.judged or not run.incomparable)]

    def _set_aside(
        self, before: ScenarioRun, after: ScenarioRun
    ) -> tuple[ConditionDifference, ...]:
        """Say in what the iterations that are not compared differ from the other side's."""
        if after.incomparable:
            kept, aside = (
                collect_conditions(before.episodes),
                collect_conditions(after.incomparable),
            )
            return list_condition_differences(kept, aside, self.policy.across)
        if before.incomparable:
            kept, aside = (
                collect_conditions(after.episodes),
                collect_conditions(before.incomparable),
            )
            return list_condition_differences(aside, kept, self.policy.across)
        return ()

    def _divergence(self, before: ScenarioRun, after: ScenarioRun) -> Divergence | None:
        """Hold the usual way against that of the failures, on the side that fails more."""
        rates = [run.tally.pass_rate or 0.0 for run in (before, after)]
        failing = rates[1] < rates[0] or self.is_passing(after.summary) is False
        paths = (
            find_typical_steps(before.episodes, failing=rates[0] < rates[1]),
            find_typical_steps(after.episodes, failing=failing),
        )
        return None if None in paths else find_divergence(*(path or () for path in paths))

    def _iterate_vanished(self, taken: Collection[ScenarioKey]) -> Iterator[ScenarioComparison]:
        """Yield what the latest run of the base had and this one has not."""
        for key, run in (self.runs[0].sides if self.runs else {}).items():
            if key not in self.after.sides and key not in taken:
                yield ScenarioComparison(
                    scenario_id=key[0],
                    agent=key[1] or None,
                    change="vanished",
                    required=run.summary.gate == "required",
                    before=compute_metrics([run], _pool_runs([run]), self.is_passing),
                )


def _pool_runs(runs: Sequence[ScenarioRun]) -> IterationPool:
    return pool_iterations(run.episodes for run in runs)


def _classify_change(before: ScenarioMetrics, after: ScenarioMetrics) -> ScenarioChange:
    if after.passing is None:
        return "not_judged"
    if before.passing is None:
        return "new"
    if before.passing:
        return "unchanged" if after.passing else "newly_failing"
    return "fixed" if after.passing else "still_failing"


def _find_newly_over(before: ScenarioRun, after: ScenarioRun) -> tuple[str, ...]:
    known = {item.violation.budget for item in before.summary.violations}
    now = {item.violation.budget for item in after.summary.violations}
    return tuple(sorted(now - known))
