"""Confirm the drops of a comparison by runs of base and head that were made in turn.

Both sides share the shift of the day, so their iterations are compared like iterations of one run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ci_agent_eval.analysis.comparison.model import (
    Comparison,
    ConfirmationResult,
    DropConfirmation,
    ScenarioComparison,
    SuiteChange,
    SuiteConfirmation,
)
from ci_agent_eval.analysis.loaded_results import ConfirmationRuns, EpisodeRecord

BLOCKS = 4
"""Times that both sides run in turn."""

ITERATIONS = 5
"""Iterations per block and side of a scenario that may have regressed."""

SAMPLE_ITERATIONS = 2
"""The same, of a scenario that is only in the sample of the suite."""

MAX_SAMPLE = 50
"""Scenarios in the sample for a drop of the suite."""

MIN_JUDGED_SHARE = 0.75
"""Share of the planned iterations that must be judged to refute a drop."""

CompareSides = Callable[[Sequence[EpisodeRecord], Sequence[EpisodeRecord]], Comparison]
"""Compares the episodes of base and head, run in turn."""


def apply_confirmation(
    found: Comparison, runs: ConfirmationRuns, compare: CompareSides
) -> Comparison:
    """Return the comparison with each drop confirmed, refuted or unclear.

    A refuted regression becomes `unconfirmed`, and a refuted drop of the suite no drop. Only the
    iterations run again decide: the first run was selected for being bad.
    """
    doubted = [s for s in found.scenarios if s.call == "regression"]
    names = {name for s in doubted for name in (s.scenario_id, s.renamed_from)}
    base, head = ([r for r in side if r.scenario_id in names] for side in (runs.base, runs.head))
    again = {(s.scenario_id, s.agent): s for s in compare(base, head).scenarios} if head else {}
    return found._replace(
        scenarios=tuple(
            _confirm_scenario(s, again.get((s.scenario_id, s.agent)), runs)
            if s.call == "regression"
            else s
            for s in found.scenarios
        ),
        suite=_confirm_suite(found, runs, compare),
    )


def _confirm_scenario(
    scenario: ScenarioComparison, again: ScenarioComparison | None, runs: ConfirmationRuns
) -> ScenarioComparison:
    planned = runs.planned.get(scenario.scenario_id)
    if planned is None:
        return scenario
    base, head = (
        (0, 0) if side is None else (side.passed, side.judged)
        for side in ((again.before, again.after) if again else (None, None))
    )
    is_drop = again is not None and again.call == "regression"
    result = _decide(is_drop=is_drop, judged=min(base[1], head[1]), planned=planned)
    call = "unconfirmed" if result == "refuted" else scenario.call
    return scenario._replace(call=call, confirmation=DropConfirmation(result, *base, *head))


def _decide(*, is_drop: bool, judged: int, planned: int) -> ConfirmationResult:
    if is_drop:
        return "confirmed"
    return "refuted" if judged >= MIN_JUDGED_SHARE * planned else "unclear"


def _confirm_suite(
    found: Comparison, runs: ConfirmationRuns, compare: CompareSides
) -> tuple[SuiteChange, ...]:
    if not any(change.fell for change in found.suite) or not runs.head:
        return found.suite
    whole = compare(runs.base, runs.head)
    again = {change.measure: change for change in whole.suite}
    judged = sum(
        min(s.before.judged, s.after.judged) for s in whole.scenarios if s.before and s.after
    )
    return tuple(
        _confirm_change(
            change, again[change.measure], found.suite_level, judged, sum(runs.planned.values())
        )
        if change.fell and change.measure in again
        else change
        for change in found.suite
    )


def _confirm_change(
    change: SuiteChange, again: SuiteChange, level: float, judged: int, planned: int
) -> SuiteChange:
    result = _decide(is_drop=again.p_value < level, judged=judged, planned=planned)
    wanted = min(change.scenarios, MAX_SAMPLE)
    if result == "refuted" and again.scenarios < MIN_JUDGED_SHARE * wanted:
        result = "unclear"
    confirmation = SuiteConfirmation(
        result, again.before, again.after, again.interval, again.scenarios
    )
    return change._replace(fell=result != "refuted", confirmation=confirmation)
