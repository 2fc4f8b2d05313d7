"""A run's scenarios with their episodes, one side of a comparison, and the tests of both sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ci_agent_eval.analysis.comparison.conditions import (
    ConditionSets,
    collect_conditions,
    matches_any,
    read_conditions,
)
from ci_agent_eval.analysis.comparison.model import ScenarioMetrics
from ci_agent_eval.analysis.comparison.pool import IterationPool
from ci_agent_eval.analysis.loaded_results import (
    EpisodeRecord,
    LoadedResults,
    OutcomeTally,
    ScenarioKey,
    group_by_scenario,
    tally_outcomes,
)
from ci_agent_eval.analysis.summary import ScenarioSummary, summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.contract.episode import get_decisive_attempt
from ci_agent_eval.contract.iteration_range import IterationRange, remove_iteration

IsPassing = Callable[[ScenarioSummary], bool | None]
"""Whether a scenario reaches its required pass rate; None: it was not judged."""

RequiredShare = Callable[[ScenarioSummary], float]
"""Required share of passing iterations, if the scenario is required."""


class ScenarioRun(NamedTuple):
    """A scenario in one run, with its episodes."""

    summary: ScenarioSummary
    """Summary of all its iterations."""
    episodes: tuple[EpisodeRecord, ...]
    conditions: ConditionSets
    tally: OutcomeTally
    """Tally of the compared iterations."""
    incomparable: tuple[EpisodeRecord, ...] = ()
    """The judged iterations that are not compared: the other side has none under the same
    conditions."""
    place: int = 0
    """Place of the run in the baseline, 0 for the latest."""


def group_scenario_runs(
    scenarios: Iterable[ScenarioSummary], episodes: Iterable[EpisodeRecord], place: int = 0
) -> dict[ScenarioKey, ScenarioRun]:
    """Return each scenario of a run with its episodes."""
    grouped = group_by_scenario(episodes)
    return {
        build_scenario_key(scenario): ScenarioRun(
            scenario,
            tuple(grouped[build_scenario_key(scenario)]),
            collect_conditions(grouped[build_scenario_key(scenario)]),
            scenario.rated,
            place=place,
        )
        for scenario in scenarios
    }


def keep_comparable(
    run: ScenarioRun, condition_sets: ConditionSets, across: Collection[str]
) -> ScenarioRun:
    """Return the run without iterations that were judged under other conditions."""
    if all(matches_any(kind, condition_sets, across) for kind in run.conditions):
        return run
    iterations: dict[tuple[str, int], list[EpisodeRecord]] = defaultdict(list)
    for record in sorted(run.episodes, key=lambda record: record.attempt):
        iterations[record.nodeid or "", record.iteration].append(record)
    kept: list[EpisodeRecord] = []
    incomparable: list[EpisodeRecord] = []
    tally = OutcomeTally()
    for attempts in iterations.values():
        final = get_decisive_attempt(attempts)
        if final.outcome in {"passed", "failed"} and not matches_any(
            read_conditions(final), condition_sets, across
        ):
            incomparable += [final] if final.is_rated else []
        else:
            kept += attempts
            tally += tally_outcomes([final.outcome]) if final.is_rated else OutcomeTally()
    return run._replace(episodes=tuple(kept), tally=tally, incomparable=tuple(incomparable))


def summarize_baseline_run(
    episodes: Sequence[EpisodeRecord], place: int = 0
) -> dict[ScenarioKey, ScenarioRun]:
    """Summarize the baseline run at a place, 0 for the latest, into its scenarios."""
    summary = summarize_results(LoadedResults(episodes=tuple(episodes)), budgets=SuiteBudgets())
    return group_scenario_runs(summary.scenarios, episodes, place)


def build_scenario_key(scenario: ScenarioSummary) -> ScenarioKey:
    """Return the scenario id and agent of a summary."""
    return scenario.scenario_id, scenario.agent or ""


def compute_demand(run: ScenarioRun, required_share: RequiredShare) -> float | None:
    """Return the required share of passing iterations by the tests; None: they are advisory.

    A quarantine is ignored: it expires and does not change the tests.
    """
    is_required = any(record.gate == "required" for record in run.episodes)
    return required_share(run.summary) if is_required else None


def build_scenario_metrics(
    runs: Sequence[ScenarioRun], pool: IterationPool, is_passing: IsPassing
) -> ScenarioMetrics:
    """Return the metrics of a scenario's pooled runs; `passing` is of the latest judged run."""
    verdicts = (is_passing(run.summary) for run in runs)
    return ScenarioMetrics(
        passed=pool.tally.passed,
        judged=pool.tally.judged,
        passing=next((verdict for verdict in verdicts if verdict is not None), None),
        cost_usd=pool.aggregate("cost_usd"),
        tokens=pool.aggregate("tokens"),
        tool_calls=pool.aggregate("tool_calls"),
        p95_latency_ms=pool.aggregate("p95_latency_ms"),
        set_aside=sum(len(run.incomparable) for run in runs),
        flaky=pool.flaky,
        latest_judged=runs[0].tally.judged,
    )


def find_vanished_cases(
    before: Collection[EpisodeRecord], after: Collection[EpisodeRecord], left_out: Collection[str]
) -> tuple[str, ...]:
    """Return the cases of the baseline that the head has no more, as texts.

    A test in another file or with another name is the same test; one with both is not.
    `left_out` has the scenarios and cases that a change has not affected.
    """
    # Results of an older plugin have no values of parameters.
    by_value = all(record.case or "[" not in (record.nodeid or "") for record in before)
    old, new = _collect_cases(before, by_value=by_value), _collect_cases(after, by_value=by_value)
    moved = _match_moved_tests(old.keys() - new.keys(), new.keys() - old.keys())
    vanished: set[str] = set()
    for test, cases in old.items():
        if (now := moved.get(test, test)) in new:
            vanished |= cases.keys() - new[now].keys()
        else:
            vanished.add(test)
        vanished -= {case for case, name in cases.items() if name in left_out}
    return tuple(sorted(vanished))


def _match_moved_tests(gone: Collection[str], added: Collection[str]) -> Mapping[str, str]:
    """Return the present name of each test that kept its function's name, else its file."""
    moved: dict[str, str] = {}
    for part in (2, 0):
        free = {test.partition("::")[part]: test for test in sorted(set(added) - {*moved.values()})}
        for test in sorted(set(gone) - moved.keys()):
            if (now := free.pop(test.partition("::")[part], None)) is not None:
                moved[test] = now
    return moved


def find_moved_test(
    before: Iterable[EpisodeRecord], after: Iterable[EpisodeRecord]
) -> tuple[str, str] | None:
    """Return the files of a scenario in the baseline and in the head, if its test has moved."""
    old, new = (
        {record.nodeid.partition("[")[0] for record in side if record.nodeid}
        for side in (before, after)
    )
    moved = _match_moved_tests(old, new).items()
    files = {tuple(test.partition("::")[0] for test in pair) for pair in moved}
    (before_file, file), *others = files or {("", "")}
    return (before_file, file) if not others and before_file != file else None


def _collect_cases(
    records: Iterable[EpisodeRecord], *, by_value: bool
) -> Mapping[str, Mapping[str, str]]:
    """Return the cases of each test function, each with its name in `left_out`."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for record in records:
        if record.nodeid is not None:
            limits = IterationRange(record.iterations, record.minimum_iterations)
            nodeid = remove_iteration(record.nodeid, record.iteration, limits)
            test, bracket, rest = nodeid.partition("[")
            shown = (record.case if by_value else None) or bracket + rest
            found[test][shown] = record.scenario_id + bracket + rest
    return found


LEAST_FALL = 0.1
"""Least fall of a score's mean that is mentioned."""

_Episodes = Sequence[EpisodeRecord]


def find_weaker_demands(before: _Episodes, after: _Episodes) -> tuple[str, ...]:
    """Return what the tests of a scenario demand less of than in the baseline, as texts.

    Demands count as the passing episodes of the head show them, case by case. A test in another
    file is the same one.
    """
    old = _group_cases(record for record in before if record.outcome in {"passed", "failed"})
    new = _group_cases(record for record in after if record.outcome == "passed")
    both = [(old[case], new[case]) for case in old if case in new]
    found = (text for sides in both for text in _compare_demands(*sides))
    return tuple(dict.fromkeys(found))


def find_lower_scores(before: _Episodes, after: _Episodes) -> tuple[str, ...]:
    """Return the checks whose every score, in passing episodes, is lower than each before."""
    old, new = _collect_scores(before), _collect_scores(after)
    return tuple(
        f"{name} {_mean(old[name]):.3g} → {_mean(new[name]):.3g}"
        for name in sorted(old.keys() & new.keys())
        if max(new[name]) < min(old[name])
        and _mean(old[name]) - _mean(new[name]) >= LEAST_FALL - 1e-9
    )


def _compare_demands(before: _Episodes, after: _Episodes) -> Iterator[str]:
    limits = _collect_limits(after)
    for name, old in sorted(_collect_limits(before).items()):
        if name not in limits:
            yield f"no hard budget {name}, {min(old):g} before"
        elif max(limits[name]) > min(old):
            yield f"{name} up to {max(limits[name]):g}, {min(old):g} before"
    passed = [_count_checks(record) for record in before if record.outcome == "passed"]
    count = max(map(_count_checks, after))
    if passed and count < min(passed):
        yield f"{count} {'check' if count == 1 else 'checks'}, {min(passed)} before"
    thresholds, names = _collect_thresholds(after), {c.name for one in after for c in one.checks}
    for name, old in sorted(_collect_thresholds(before).items()):
        now = max(thresholds.get(name, [0.0]))
        if name in names and now < max(old):
            yield f"{name} from {now:g}, {max(old):g} before"
    stops = {stop for record in before for stop in record.allowed_stops}
    for stop in sorted({stop for record in after for stop in record.allowed_stops} - stops):
        yield f"it may end in {stop}"


def _group_cases(records: Iterable[EpisodeRecord]) -> Mapping[str, _Episodes]:
    """Return the episodes of each test and its parameters, without the file."""
    found: dict[str, list[EpisodeRecord]] = defaultdict(list)
    for record in records:
        limits = IterationRange(record.iterations, record.minimum_iterations)
        nodeid = remove_iteration(record.nodeid or "", record.iteration, limits)
        found[nodeid.partition("::")[2]].append(record)
    return found


def _count_checks(record: EpisodeRecord) -> int:
    return len({check.name for check in record.checks})


def _collect_limits(records: _Episodes) -> Mapping[str, list[float]]:
    return _group_values(one for record in records for one in record.hard_limits)


def _collect_thresholds(records: _Episodes) -> Mapping[str, list[float]]:
    checks = (check for record in records for check in record.checks)
    return _group_values((c.name, c.threshold) for c in checks if c.threshold is not None)


def _collect_scores(records: _Episodes) -> Mapping[str, list[float]]:
    passed = (record for record in records if record.outcome == "passed")
    return _group_values((c.name, c.score) for record in passed for c in record.checks)


def _group_values(pairs: Iterable[tuple[str, float]]) -> Mapping[str, list[float]]:
    found: dict[str, list[float]] = defaultdict(list)
    for name, value in pairs:
        found[name].append(value)
    return found


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
