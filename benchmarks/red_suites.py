"""Whether a simulated suite is red by the comparison, by the product's own tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ci_agent_eval.analysis.comparison.run_variation import ScenarioCounts, estimate_run_correlation
from ci_agent_eval.analysis.comparison.scenario_test import compute_drop_p_values
from ci_agent_eval.analysis.comparison.suite_change import SuiteSample, compute_suite_change


class SuiteDrops(NamedTuple):
    """The significant drops of required scenarios."""

    scenarios: tuple[int, ...]
    """Their places."""
    whole: bool
    """Whether the mean of all fell."""


def find_drops(
    suite: Sequence[ScenarioCounts], level: float, *, interleaved: bool = False
) -> SuiteDrops:
    """Return the drops that are red; half of the level is for the scenarios, half for all.

    Interleaved sides share the shift of a day.
    """
    correlation = 0.0 if interleaved else estimate_run_correlation(suite)
    p_values = compute_drop_p_values(suite, correlation, level / 2)
    samples = [
        SuiteSample(tuple(run.rate for run in s.before), s.pooled.rate, s.after.rate) for s in suite
    ]
    whole = compute_suite_change("pass_rate", samples, gates=True, interleaved=interleaved)
    fell = (n for n, p_value in enumerate(p_values) if p_value is not None and p_value < level / 2)
    return SuiteDrops(tuple(fell), whole is not None and whole.p_value < level / 2)


def is_red(suite: Sequence[ScenarioCounts], level: float) -> bool:
    """Return whether required scenarios are red by the comparison; `level` is of all together."""
    return any(find_drops(suite, level))
