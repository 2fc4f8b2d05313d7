"""Holding a run against the runs of the base."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from ci_agent_eval.comparison import statistics
from ci_agent_eval.comparison.conditions import (
    Kinds,
    common,
    conditions_of,
    differences,
)
from ci_agent_eval.comparison.model import (
    Baseline,
    Call,
    Change,
    ComparePolicy,
    Comparison,
    Difference,
    Divergence,
    ScenarioComparison,
    Side,
)
from ci_agent_eval.comparison.movements import movements
from ci_agent_eval.comparison.paths import divergence, representative
from ci_agent_eval.comparison.sides import (
    IsPassing,
    RunSide,
    ScenarioKey,
    narrowed,
    side,
    sides_of,
    sides_of_run,
)
from ci_agent_eval.comparison.trend import trend
from ci_agent_eval.facts import EpisodeFacts
from ci_agent_eval.summary import Summary


def compare(
    summary: Summary,
    episodes: Sequence[EpisodeFacts],
    baseline: Baseline,
    *,
    is_passing: IsPassing,
    policy: ComparePolicy,
) -> Comparison:
    """Compare a run, folded in `summary` from `episodes`, with the runs of the base.

    The same for any order of episodes. Raises InputError where SciPy is needed and missing.
    """
    after = _Run(sides_of(summary.scenarios, episodes))
    runs = [_Run(sides_of_run(run.episodes)) for run in baseline.runs]
    paired = _Pairing(runs, after, is_passing, policy)
    scenarios = _with_calls(paired.all(), policy)
    lost = sum(1 for s in scenarios if s.change == "newly_failing")
    won = sum(1 for s in scenarios if s.change == "fixed")
    return Comparison(
        label=baseline.label,
        runs=len(baseline.runs),
        level=policy.level,
        scenarios=tuple(sorted(scenarios, key=lambda s: (s.scenario_id, s.agent or ""))),
        suite_p_value=statistics.p_value_of_losses(lost, won),
        trend=trend(
            baseline.runs,
            [[side.summary for side in run.sides.values()] for run in runs],
            summary.scenarios,
        ),
        **movements(scenarios),
    )


@dataclass(frozen=True)
class _Run:
    """The scenarios of a run, and the agents of each."""

    sides: Mapping[ScenarioKey, RunSide]

    @cached_property
    def agents(self) -> Mapping[str, Sequence[ScenarioKey]]:
        """The keys that share a scenario's name."""
        found: dict[str, list[ScenarioKey]] = defaultdict(list)
        for key in self.sides:
            found[key[0]].append(key)
        return dict(found)


@dataclass(frozen=True)
class _Pairing:
    """The scenarios of this run, each beside its own past."""

    runs: Sequence[_Run]
    after: _Run
    is_passing: IsPassing
    policy: ComparePolicy

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
            present.append(replace(compared, renamed_from=renamed))
            # What an older run knew by a former name says nothing of what the latest one had.
            taken |= {before for _, before in known[:1] if before}
        return [*present, *self._vanished(taken)]

    def _names(self, key: ScenarioKey, run: RunSide) -> tuple[str, ...]:
        """Return the names a scenario is known by, the present one first.

        One that lives on, or lived beside the present one in some run, is another scenario's.
        """
        former = sorted({name for facts in run.episodes for name in facts.was})
        return key[0], *(name for name in former if not self._is_another(name, key[0]))

    def _is_another(self, former: str, present: str) -> bool:
        beside = (found.agents for found in self.runs)
        return former in self.after.agents or any(
            former in agents and present in agents for agents in beside
        )

    def _before(self, found: _Run, key: ScenarioKey, names: Sequence[str]) -> ScenarioKey | None:
        """Return what a run of the base knows a scenario by; None: it has it not."""
        for name in names:
            candidate = (name, key[1])
            if candidate not in found.sides:
                candidate = self._lone(found, key, name)
            if candidate in found.sides:
                return candidate
        return None

    def _lone(self, found: _Run, key: ScenarioKey, name: str) -> ScenarioKey:
        """Return the only agent's on both sides: one that is called otherwise is the same."""
        now, before = self.after.agents[key[0]], found.agents.get(name, ())
        return before[0] if len(now) == len(before) == 1 else key

    def _scenario(
        self, key: ScenarioKey, run: RunSide, past: Sequence[RunSide]
    ) -> ScenarioComparison:
        after = side([run], self.is_passing)
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
        old, new = common(past[0].conditions, run.conditions, across)
        if not new:
            found = differences(past[0].conditions, run.conditions, across)
            before = side(past[:1], self.is_passing)
            return replace(compared, change="not_comparable", differences=found, before=before)
        now = narrowed(run, old, across)
        comparable = self._comparable(past, new)
        before, after = side(comparable, self.is_passing), side([now], self.is_passing)
        return replace(
            compared,
            change=_change(before, after),
            before=before,
            after=after,
            newly_over=_newly_over(comparable[0], run),
            differences=self._set_aside(comparable[0], now),
            divergence=self._divergence(comparable[0], now),
        )

    def _comparable(self, past: Sequence[RunSide], kinds: Kinds) -> Sequence[RunSide]:
        """Return what of each run of the base was made under such conditions; all of the latest.

        A run without any such iteration is of other times, and does not count.
        """
        narrow = [narrowed(run, kinds, self.policy.across) for run in past]
        return [narrow[0], *(run for run in narrow[1:] if run.tally.judged or not run.aside)]

    def _set_aside(self, before: RunSide, after: RunSide) -> tuple[Difference, ...]:
        """Say in what the iterations that are not compared differ from the other side's."""
        if after.aside:
            kept, aside = conditions_of(before.episodes), conditions_of(after.aside)
            return differences(kept, aside, self.policy.across)
        if before.aside:
            kept, aside = conditions_of(after.episodes), conditions_of(before.aside)
            return differences(aside, kept, self.policy.across)
        return ()

    def _divergence(self, before: RunSide, after: RunSide) -> Divergence | None:
        """Hold the usual way against that of the failures, on the side that fails more."""
        rates = [run.tally.pass_rate or 0.0 for run in (before, after)]
        failing = rates[1] < rates[0] or self.is_passing(after.summary) is False
        paths = (
            representative(before.episodes, failing=rates[0] < rates[1]),
            representative(after.episodes, failing=failing),
        )
        return None if None in paths else divergence(*(path or () for path in paths))

    def _vanished(self, taken: Collection[ScenarioKey]) -> Iterator[ScenarioComparison]:
        """Yield what the latest run of the base had and this one has not."""
        for key, run in (self.runs[0].sides if self.runs else {}).items():
            if key not in self.after.sides and key not in taken:
                yield ScenarioComparison(
                    scenario_id=key[0],
                    agent=key[1] or None,
                    change="vanished",
                    required=run.summary.gate == "required",
                    before=side([run], self.is_passing),
                )


def _change(before: Side, after: Side) -> Change:
    if after.passing is None or before.passing is None:
        return "new" if before.passing is None else "unchanged"
    if before.passing:
        return "unchanged" if after.passing else "newly_failing"
    return "fixed" if after.passing else "still_failing"


def _newly_over(before: RunSide, after: RunSide) -> tuple[str, ...]:
    known = {item.violation.budget for item in before.summary.violations}
    now = {item.violation.budget for item in after.summary.violations}
    return tuple(sorted(now - known))


def _with_calls(
    scenarios: Sequence[ScenarioComparison], policy: ComparePolicy
) -> list[ScenarioComparison]:
    """Say of each scenario whether its pass rate fell, corrected for their number."""
    tested = [s for s in scenarios if _is_testable(s)]
    raw = [statistics.p_value_of_drop(*_counts(s)) for s in tested]
    p_values = dict(zip(map(id, tested), statistics.adjusted(raw), strict=True))
    level = policy.level / max(len(tested), 1)
    return [
        _called(s, p_values[id(s)], policy, level) if id(s) in p_values else s for s in scenarios
    ]


def _is_testable(scenario: ScenarioComparison) -> bool:
    before, after = scenario.before, scenario.after
    if before is None or after is None or scenario.change == "not_comparable":
        return False
    return bool(before.judged and after.judged)


def _counts(scenario: ScenarioComparison) -> tuple[int, int, int, int]:
    before, after = scenario.before, scenario.after
    assert before is not None, "only what has both sides is tested"  # noqa: S101 - see _is_testable
    assert after is not None, "only what has both sides is tested"  # noqa: S101 - see _is_testable
    return before.passed, before.judged, after.passed, after.judged


def _called(
    scenario: ScenarioComparison, p_value: float, policy: ComparePolicy, level: float
) -> ScenarioComparison:
    counts = _counts(scenario)
    call = _call(counts, p_value, policy)
    needed = statistics.iterations_to_tell(*counts, level) if call == "undecided" else None
    return replace(scenario, call=call, p_value=p_value, needed_iterations=needed)


def _call(counts: tuple[int, int, int, int], p_value: float, policy: ComparePolicy) -> Call:
    passed_before, judged_before, passed_after, judged_after = counts
    if p_value < policy.level:
        return "regression"
    drop = passed_before / judged_before - passed_after / judged_after
    # Rounded: 0.9 - 0.7 is less than 0.2 as floats are.
    return "undecided" if drop > 0 and round(drop, 9) >= policy.min_drop else "no_regression"
