"""Options of the suite budgets, and access to the plugin object that enforces them.

Imported at every start of pytest, so it imports only modules that an unrelated suite loads anyway.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import pytest

from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS, SuiteBudgetKind
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.options import add_number_setting
from ci_agent_eval.pytest_plugin.parts import get_parts

WORKER_STARTED = "agent_eval_started"
"""Key of an xdist worker's input: when the main process's session began."""


def parse_amount(text: str) -> float:
    """Parse an amount; raises argparse's error, which pytest prints as usage."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise argparse.ArgumentTypeError(f"give a number, 0 or more (got {text!r})")
    return number


def parse_whole_amount(text: str) -> int:
    """Parse a whole amount; raises the same error as `parse_amount`."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"give a whole number, 0 or more (got {text!r})")
    return int(text)


KINDS = tuple(kind for kind in SUITE_BUDGET_KINDS if kind.spent)
"""The budgets at which a running suite stops."""


def add_budget_options(parser: pytest.Parser) -> None:
    """Add an option and an ini setting for each suite budget."""
    group = parser.getgroup("episodes")
    for kind in KINDS:
        option = "--" + kind.name.replace("_", "-")
        group.addoption(
            option, metavar=kind.metavar, type=_choose_parser(kind), help=kind.option_help
        )
        add_number_setting(parser, kind.name, default="")


def _choose_parser(kind: SuiteBudgetKind) -> Callable[[str], float]:
    return parse_whole_amount if kind.is_whole else parse_amount


def prepare_budgets(config: pytest.Config) -> None:
    """Stop the run at the budgets of the suite, if it has any. Raises pytest.UsageError."""
    configured = {kind.name: _read_limit(config, kind) for kind in KINDS}
    limits = {name: limit for name, limit in configured.items() if limit is not None}
    if config.option.collectonly or not limits:
        return
    from ci_agent_eval.pytest_plugin.budgets.budget_stop import BudgetStop  # noqa: PLC0415 - if needed

    get_parts(config).budgets = BudgetStop(config, limits)


def prepare_worker(node: Any) -> None:
    """Send an xdist worker when the run began.

    Raises pytest.UsageError if the workers write no journals, over which their spending is summed.
    """
    found = get_parts(node.config).budgets
    if found is None:
        return
    if found.limits_spending and options.get_report_dir(node.config) is None:
        raise pytest.UsageError(
            "--total-cost-usd and --total-tokens: several workers add up what they spend from "
            "their journals; give --episode-report-dir too, or run without workers (-n 0)"
        )
    node.workerinput[WORKER_STARTED] = get_start_time(node.config)


def _read_limit(config: pytest.Config, kind: SuiteBudgetKind) -> float | None:
    option: float | None = getattr(config.option, kind.name)
    if option is not None:
        return option
    text = str(config.getini(kind.name)).strip()
    try:
        return _choose_parser(kind)(text) if text else None
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"ini setting {kind.name}: {error}") from None


def get_start_time(config: pytest.Config) -> float:
    """Return when the main process's session began, which a budget of time counts from."""
    if options.is_worker(config):
        started: float = config.workerinput[WORKER_STARTED]  # type: ignore[attr-defined]
        return started
    parts = get_parts(config)
    parts.started = clock() if parts.started is None else parts.started
    return parts.started


clock = time.monotonic
"""Shared by all processes of a machine."""
