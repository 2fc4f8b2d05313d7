"""The false alarms and the power of a suite, as terminal text."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ci_agent_eval.analysis.comparison.power import POWER
from ci_agent_eval.analysis.comparison.run_variation import ASSUMED_DAY
from ci_agent_eval.analysis.comparison.suite_power import PlannedPower, SuiteAlarms
from ci_agent_eval.analysis.false_alarms import ACCEPTABLE_CHANCE, SuitePlan
from ci_agent_eval.render.numbers import count_noun, format_count, format_percent

_FEW = f"{ACCEPTABLE_CHANCE * 100:g} %"
_OFTEN = f"{POWER * 100:g} %"


def render_plan(found: PlannedPower) -> str:
    """Return the false alarms of a planned suite, and the smallest drop that it finds."""
    return "".join(f"{line}\n" for line in _list_plan_lines(found))


def _list_plan_lines(found: PlannedPower) -> Iterator[str]:
    plan = found.plan
    yield (
        f"Plan: {count_noun(plan.scenarios, 'required scenario')} × "  # noqa: RUF001 - times
        f"{count_noun(plan.iterations, 'iteration')}, each passes {format_percent(plan.pass_rate)} "
        f"of the time; {_describe_requirement(plan)}"
    )
    yield ""
    chance = format_percent(found.false_alarm_chance)
    yield f"An unchanged suite fails its required pass rate in {chance} of runs."
    if found.quiet_plans:
        yield f"At most {_FEW} of runs would fail with one of:"
    for change in found.quiet_plans:
        chance = format_percent(change.false_alarm_chance)
        yield f"  {_describe_change(change.plan, plan)} ({chance})"
    yield ""
    runs = count_noun(found.runs, "baseline run")
    yield f"Smallest drop of all scenarios that is found in {_OFTEN} of runs against {runs}:"
    yield f"  {_format_drop(found.smallest_drop)}, where runs do not differ from day to day"
    day = f"±{ASSUMED_DAY * 100:g} points"
    yield f"  {_format_drop(found.smallest_drop_with_days)}, where they differ by {day}"


def _describe_requirement(plan: SuitePlan) -> str:
    if plan.suite_min_pass_rate is not None:
        return f"all together must pass {plan.suite_min_pass_rate:.6g}"
    return f"each must pass {plan.min_pass_rate:.6g}"


def _describe_change(change: SuitePlan, plan: SuitePlan) -> str:
    parts = []
    if change.iterations != plan.iterations:
        parts.append(count_noun(change.iterations, "iteration"))
    if change.suite_min_pass_rate is not None:
        parts.append(f"suite_min_pass_rate {change.suite_min_pass_rate:.6g}")
    elif change.min_pass_rate != plan.min_pass_rate or not parts:
        parts.append(f"min_pass_rate {change.min_pass_rate:.6g}")
    return " and ".join(parts)


def _format_drop(drop: float | None) -> str:
    return "none" if drop is None else f"{drop * 100:.0f} points"


def render_alarms(found: SuiteAlarms) -> str:
    """Return how often suites resampled from the baseline are red."""
    return "".join(f"{line}\n" for line in _list_alarm_lines(found))


def _list_alarm_lines(found: SuiteAlarms) -> Iterator[str]:
    yield (
        f"Baseline: {count_noun(found.runs, 'run')} of "
        f"{count_noun(found.scenarios, 'required scenario')}; "
        f"{format_percent(found.pass_rate)} of their iterations pass"
    )
    yield ""
    yield f"Of {format_count(found.resamples)} unchanged suites, resampled from these runs:"
    yield f"  {_format_share(found.by_required_rates, found.resamples)} miss a required pass rate"
    yield f"  {_format_share(found.by_comparison, found.resamples)} are red by the comparison"
    yield f"  {_format_share(found.by_either, found.resamples)} are red by either"
    if found.runs > 1:
        yield f"{found.own_runs_red} of the {found.runs} runs are red against the others."
    else:
        yield "With one run, differences between runs are not seen."
    yield (
        f"At most {_FEW} would miss min_pass_rate "
        f"{found.quiet_min_pass_rate:.6g} or suite_min_pass_rate "
        f"{found.quiet_suite_min_pass_rate:.6g}."
    )
    yield ""
    yield "Red by the comparison, where every scenario passes less often:"
    for drop in found.drops:
        yield f"  by {drop.drop * 100:g} points: {_format_share(drop.red, drop.resamples)}"


def _format_share(count: int, whole: int) -> str:
    """Write a simulated share with its standard error."""
    share = count / whole
    error = math.sqrt(share * (1 - share) / whole)
    return f"{format_percent(share)} ±{error * 100:.1f}"
