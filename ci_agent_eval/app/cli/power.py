"""`agent-eval power`: how often a suite is red by chance, and which drops it finds."""

# ruff: noqa: PLC0415 - commands import lazily

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ci_agent_eval.app.cli.settings_options import add_format_option, add_settings_options
from ci_agent_eval.config.options import OPTIONS

if TYPE_CHECKING:
    from ci_agent_eval.analysis.comparison.suite_power import PlannedPower, SuiteAlarms

_SETTINGS = {
    "suite",
    "min-pass-rate",
    "suite-min-pass-rate",
    "baseline",
    "baseline-runs",
    "compare-level",
}

EXIT_CODES = """\b
Exit codes:
  0    the figures were printed
  2    usage, configuration or input error
  3    unexpected error
  130  interrupted
"""


@click.command(epilog=EXIT_CODES)
@click.option("--scenarios", type=click.IntRange(1, 2_000), help="Number of required scenarios.")
@click.option(
    "--iterations", type=click.IntRange(1, 1_000), default=1, help="Iterations of each scenario."
)
@click.option(
    "--pass-rate",
    type=click.FloatRange(0, 1),
    default=0.95,
    help="True pass rate that is assumed of each scenario; default: 0.95.",
)
@click.option(
    "--runs", type=click.IntRange(1, 100), default=1, help="Baseline runs to compare with."
)
@add_format_option("text", "json")
@add_settings_options(
    publishing=False, without=[o.name for o in OPTIONS if o.name not in _SETTINGS]
)
def power(
    *,
    scenarios: int | None,
    iterations: int,
    pass_rate: float,
    runs: int,
    format_: str,
    config: Path | None,
    **flags: object,
) -> int:
    """Show how often an unchanged suite is red, and the smallest drop that it finds.

    \b
    agent-eval power --scenarios 50 --iterations 5 --pass-rate 0.95
    agent-eval power --baseline baseline/

    With --scenarios for a plan; without it for the runs of the baseline, which are resampled.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    from ci_agent_eval.analysis.comparison.arrays import require_numpy
    from ci_agent_eval.analysis.comparison.suite_power import plan_power, simulate_alarms
    from ci_agent_eval.analysis.false_alarms import SuitePlan
    from ci_agent_eval.app.pipeline import Job, find_baseline
    from ci_agent_eval.app.suite_planning import require_rated_scenarios
    from ci_agent_eval.config.settings import load_settings
    from ci_agent_eval.render.terminal.power import render_alarms, render_plan

    require_numpy()
    root, named = Path.cwd(), {key.replace("_", "-"): value for key, value in flags.items()}
    settings = load_settings(root=root, environ=os.environ, flags=named, config=config)
    gate, level = settings.gate, settings.compare.level
    if scenarios is not None:
        plan = SuitePlan(
            scenarios, iterations, pass_rate, gate.min_pass_rate, gate.suite_min_pass_rate
        )
        planned = plan_power(plan, runs, level)
        text = _render_json(planned) if format_ == "json" else render_plan(planned)
    else:
        found = find_baseline(Job(settings, root=root, environ=os.environ), is_own=False)
        rated = require_rated_scenarios(found, settings)
        alarms = simulate_alarms(rated, level, gate.suite_min_pass_rate)
        text = _render_json(alarms) if format_ == "json" else render_alarms(alarms)
    click.echo(text, nl=False)
    return 0


def _render_json(found: PlannedPower | SuiteAlarms) -> str:
    return f"{json.dumps(dataclasses.asdict(found), indent=2)}\n"
