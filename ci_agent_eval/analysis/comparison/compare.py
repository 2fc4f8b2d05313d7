"""Compare a run with the runs of the baseline."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from ci_agent_eval.analysis.comparison.behaviour import describe_behaviour
from ci_agent_eval.analysis.comparison.conditions import (
    ConditionSets,
    collect_conditions,
    compare_conditions,
    count_changed_conditions,
    find_common_conditions,
    list_changed_conditions,
)
from ci_agent_eval.analysis.comparison.log_means import Measurements, collect_measurements
from ci_agent_eval.analysis.comparison.metric_changes import (
    MetricChanges,
    compute_metric_changes,
)
from ci_agent_eval.analysis.comparison.model import (
    Baseline,
    ComparePolicy,
    Comparison,
    ConditionDifference,
    RunCost,
    ScenarioChange,
    ScenarioComparison,
    ScenarioMetrics,
    SuiteChange,
)
from ci_agent_eval.analysis.comparison.pool import (
    IterationPool,
    PoolPair,
    find_distinct_runs,
    pool_iterations,
)
from ci_agent_eval.analysis.comparison.regressions import decide_regressions
from ci_agent_eval.analysis.comparison.scenario_runs import (
    IsPassing,
    RequiredShare,
    ScenarioRun,
    build_scenario_metrics,
    compute_demand,
    find_lower_scores,
    find_moved_test,
    find_vanished_cases,
    find_weaker_demands,
    group_scenario_runs,
    keep_comparable,
    summarize_baseline_run,
)
from ci_agent_eval.analysis.comparison.suite_change import (
    ComparedScenario,
    list_suite_changes,
    mark_drops,
)
from ci_agent_eval.analysis.distributions import round_significant
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, ScenarioKey
from ci_agent_eval.analysis.summary import ScenarioSummary, Summary


def compare_runs(
    summary: Summary,
    episodes: Sequence[EpisodeRecord],
    baseline: Baseline,
    *,
    is_passing: IsPassing,
    required_share: RequiredShare,
    policy: ComparePolicy,
) -> Comparison:
    """Compare a run (`summary` of `episodes`) with the runs of the baseline.

    The result does not depend on the order of episodes. Raises InputError if NumPy is missing.
    """
    after = _RunScenarios(group_scenario_runs(summary.scenarios, episodes))
    runs = [
        _RunScenarios(summarize_baseline_run(run.episodes, place))
        for place, run in enumerate(baseline.runs)
    ]
    counted = [runs[place] for place in find_distinct_runs(baseline.runs)]
    is_partial = bool(summary.shard or summary.restrictions)
    left_out = None if is_partial else frozenset(summary.left_out)
    paired = _ScenarioPairing(counted, after, is_passing, required_share, policy, left_out)
    compared = paired.compare_all()
    measurements = collect_measurements(paired.pools)
    decided = decide_regressions(compared, paired.pools, measurements, policy)
    scenarios, behaviour = describe_behaviour(decided.scenarios, paired.pools, policy.level / 2)
    suite = list_suite_changes(paired.list_compared(scenarios), policy)
    suite_level = _share_level(suite, policy)
    return Comparison(
        label=baseline.label,
        runs=len(baseline.runs),
        level=policy.level,
        scenarios=tuple(sorted(scenarios, key=lambda s: (s.scenario_id, s.agent or ""))),
        suite_level=suite_level,
        run_correlation=round_significant(decided.run_correlation),
        suite=mark_drops(suite, suite_level),
        changed_conditions=count_changed_conditions(scenarios),
        tool_renames=behaviour.renames,
        tool_changes=behaviour.tools,
        copies=len(runs) - len(counted),
        replays=sum(before.repeated for before, _ in paired.pools.values()),
        latest_cost=_sum_cost(side.summary for run in runs[:1] for side in run.sides.values()),
        head_cost=_sum_cost(summary.scenarios),
        **_compare_metrics(scenarios, paired.pools, measurements, suite_level),
    )


def _sum_cost(scenarios: Iterable[ScenarioSummary]) -> RunCost:
    """Return what a run cost, as its own report says it."""
    ran = [scenario for scenario in scenarios if scenario.tally.ran]
    costs = [scenario.cost_usd for scenario in ran if scenario.cost_usd is not None]
    if not costs or len(costs) < len(ran):
        return RunCost()
    total = math.fsum(costs)
    return RunCost(
        per_episode_usd=round(total / sum(scenario.tally.ran for scenario in ran), 10),
        total_usd=round(total, 10),
    )


def _share_level(suite: Sequence[SuiteChange], policy: ComparePolicy) -> float:
    """Return the level of each question about the suite: half of all, in equal shares."""
    increases = policy.increases
    limits = (increases.cost, increases.latency, increases.typical_latency)
    gating = sum(1 for change in suite if change.gates)
    gating += sum(1 for limit in limits if limit is not None)
    return policy.level / 2 / max(gating, 1)


def _compare_metrics(
    scenarios: Sequence[ScenarioComparison],
    pools: Mapping[ScenarioKey, PoolPair],
    measurements: Measurements,
    level: float,
) -> MetricChanges:
    compared = (s for s in scenarios if (s.scenario_id, s.agent or "") in pools)
    sides = [(s.before, s.after) for s in compared if s.before and s.after]
    return compute_metric_changes(sides, measurements, level)


@dataclass(frozen=True)
class _RunScenarios:
    """The scenarios of a run, by scenario id and agent."""

    sides: Mapping[ScenarioKey, ScenarioRun]

    @cached_property
    def agents(self) -> Mapping[str, Sequence[ScenarioKey]]:
        """The keys of each scenario id."""
        found: dict[str, list[ScenarioKey]] = defaultdict(list)
        for key in self.sides:
            found[key[0]].append(key)
        return dict(found)


@dataclass(frozen=True)
class _ScenarioPairing:
    """Pairs the scenarios of the head with the scenarios of the baseline."""

    runs: Sequence[_RunScenarios]
    after: _RunScenarios
    is_passing: IsPassing
    required_share: RequiredShare
    policy: ComparePolicy
    left_out: Collection[str] | None = None
    """Scenarios and cases that a change has not affected; None: other ones did not run either."""
    pools: dict[ScenarioKey, PoolPair] = field(default_factory=dict)
    """The iterations of each compared scenario, in the baseline and in the head."""

    def compare_all(self) -> Sequence[ScenarioComparison]:
        """Compare every scenario of the head, and list those only in the latest baseline run."""
        present: list[ScenarioComparison] = []
        matched: set[ScenarioKey] = set()
        for key, run in self.after.sides.items():
            names = self._list_names(key, run)
            known = [(found, self._find_before(found, key, names)) for found in self.runs]
            past = [(before, found.sides[before]) for found, before in known if before]
            compared = self._compare_scenario(key, run, [before for _, before in past])
            latest = past[0][0][0] if past else key[0]
            renamed = latest if latest != key[0] else None
            # Names in older runs do not count: only the latest run's scenarios can vanish.
            own = {before for _, before in known[:1] if before}
            matched |= own
            cases = [self._compare_cases(self.runs[0].sides[key], run) for key in own]
            demands = [compute_demand(self.runs[0].sides[key], self.required_share) for key in own]
            present.append(
                compared._replace(
                    renamed_from=renamed,
                    moved=cases[0][0] if cases else None,
                    vanished_cases=cases[0][1] if cases else (),
                    weaker_demands=self._find_weaker_demands(own, run),
                    lower_scores=self._find_lower_scores(compared, past, run),
                    demand=compute_demand(run, self.required_share),
                    demand_before=demands[0] if demands else None,
                )
            )
        return [*present, *self._iterate_vanished(matched)]

    def _find_weaker_demands(
        self, own: Collection[ScenarioKey], run: ScenarioRun
    ) -> tuple[str, ...]:
        """Return what a required scenario demands less of than in the latest baseline run."""
        if run.summary.gate != "required":
            return ()
        before = [record for key in own for record in self.runs[0].sides[key].episodes]
        return find_weaker_demands(before, run.episodes)

    def _find_lower_scores(
        self,
        compared: ScenarioComparison,
        past: Sequence[tuple[ScenarioKey, ScenarioRun]],
        run: ScenarioRun,
    ) -> tuple[str, ...]:
        if compared.change == "not_comparable":
            return ()
        before = [record for _, found in past for record in found.episodes]
        return find_lower_scores(before, run.episodes)

    def _compare_cases(
        self, before: ScenarioRun, after: ScenarioRun
    ) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
        """Return the files of a moved test, and the vanished cases of a run of the whole suite."""
        moved = find_moved_test(before.episodes, after.episodes)
        if self.left_out is None or before.summary.agent != after.summary.agent:
            return moved, ()
        return moved, find_vanished_cases(before.episodes, after.episodes, self.left_out)

    def list_compared(self, scenarios: Sequence[ScenarioComparison]) -> list[ComparedScenario]:
        """Return the compared scenarios with their iterations."""
        keys = [(s.scenario_id, s.agent or "") for s in scenarios]
        return [
            ComparedScenario(self.pools[key], run.summary.mode == "evaluation", s.required)
            for key, s in zip(keys, scenarios, strict=True)
            if key in self.pools and (run := self.after.sides.get(key))
        ]

    def _list_names(self, key: ScenarioKey, run: ScenarioRun) -> tuple[str, ...]:
        """Return the present name of a scenario, then its former names.

        A former name that still exists, or that was in one run with the present name, belongs to
        another scenario and is left out.
        """
        former = sorted({name for record in run.episodes for name in record.was})
        return key[0], *(name for name in former if not self._is_another(name, key[0]))

    def _is_another(self, former: str, present: str) -> bool:
        past_agents = (found.agents for found in self.runs)
        return former in self.after.agents or any(
            former in agents and present in agents for agents in past_agents
        )

    def _find_before(
        self, found: _RunScenarios, key: ScenarioKey, names: Sequence[str]
    ) -> ScenarioKey | None:
        """Return the key of a scenario in a baseline run; None: the run does not have it."""
        for name in names:
            candidate = (name, key[1])
            if candidate not in found.sides:
                candidate = self._find_lone(found, key, name)
            if candidate in found.sides:
                return candidate
        return None

    def _find_lone(self, found: _RunScenarios, key: ScenarioKey, name: str) -> ScenarioKey:
        """Return the only agent's key if both sides have just one, which may have been renamed."""
        now, before = self.after.agents[key[0]], found.agents.get(name, ())
        return before[0] if len(now) == len(before) == 1 else key

    def _compare_scenario(
        self, key: ScenarioKey, run: ScenarioRun, past: Sequence[ScenarioRun]
    ) -> ScenarioComparison:
        after = build_scenario_metrics([run], _pool_runs([run]), self.is_passing)
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
            found = compare_conditions(past[0].conditions, run.conditions, across)
            before = build_scenario_metrics(past[:1], _pool_runs(past[:1]), self.is_passing)
            return compared._replace(change="not_comparable", differences=found, before=before)
        now = keep_comparable(run, old, across)
        comparable = self._keep_comparable(past, new)
        pools = self.pools[key] = _pool_runs(comparable), _pool_runs([now])
        before = build_scenario_metrics(comparable, pools[0], self.is_passing)
        after = build_scenario_metrics([now], pools[1], self.is_passing)
        return compared._replace(
            change=_classify_change(before, after),
            before=before,
            after=after,
            newly_over=_find_newly_over(comparable[0], run),
            differences=self._list_differences(comparable[0], now),
            changed_conditions=list_changed_conditions(
                collect_conditions(comparable[0].episodes), collect_conditions(now.episodes)
            ),
        )

    def _keep_comparable(
        self, past: Sequence[ScenarioRun], condition_sets: ConditionSets
    ) -> Sequence[ScenarioRun]:
        """Keep the iterations of each baseline run that ran under these conditions.

        Older runs must be like the latest in everything: the base may have changed its model. One
        without such iterations is left out; the latest run always stays.
        """
        latest = keep_comparable(past[0], condition_sets, self.policy.across)
        usual = collect_conditions(latest.episodes)
        older = [keep_comparable(run, usual, ()) for run in past[1:]] if usual else past[1:]
        return [latest, *(run for run in older if run.tally.judged or not run.incomparable)]

    def _list_differences(
        self, before: ScenarioRun, after: ScenarioRun
    ) -> tuple[ConditionDifference, ...]:
        """Return the conditions that differ between incomparable iterations and the other side."""
        if after.incomparable:
            kept, incomparable = (
                collect_conditions(before.episodes),
                collect_conditions(after.incomparable),
            )
            return compare_conditions(kept, incomparable, self.policy.across)
        if before.incomparable:
            kept, incomparable = (
                collect_conditions(after.episodes),
                collect_conditions(before.incomparable),
            )
            return compare_conditions(incomparable, kept, self.policy.across)
        return ()

    def _iterate_vanished(self, matched: Collection[ScenarioKey]) -> Iterator[ScenarioComparison]:
        """Yield the scenarios of the latest baseline run that the head does not have."""
        for key, run in (self.runs[0].sides if self.runs else {}).items():
            if key not in self.after.sides and key not in matched:
                yield ScenarioComparison(
                    scenario_id=key[0],
                    agent=key[1] or None,
                    change="vanished",
                    required=run.summary.gate == "required",
                    before=build_scenario_metrics([run], _pool_runs([run]), self.is_passing),
                )


def _pool_runs(runs: Sequence[ScenarioRun]) -> IterationPool:
    return pool_iterations((run.place, run.episodes) for run in runs)


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
