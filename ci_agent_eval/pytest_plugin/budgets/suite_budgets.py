"""What the processes of a run share: its options, and what leads the others to it.

Imported at every start of pytest, so that it brings nothing along but what an unrelated suite
has anyway. `docs/decisions/0027-run-ledger.md` says why there is a file.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.contract.budget_kinds import SUITE_BUDGET_KINDS, SuiteBudgetKind
from ci_agent_eval.pytest_plugin.options import is_worker

if TYPE_CHECKING:
    from ci_agent_eval.engine.limits import Spent
    from ci_agent_eval.pytest_plugin.budgets.stop import BudgetStop
    from ci_agent_eval.storage.ledger.budgets import SuiteBudgets
    from ci_agent_eval.storage.ledger.file import LedgerFile
    from ci_agent_eval.storage.ledger.shared import SharedWindows

NAME = "ci_agent_eval_suite_budgets"
"""What pytest knows the object by that keeps the budgets of the suite."""

WORKER_LEDGER = "agent_eval_ledger"
"""Key under which an xdist worker is told where the run's file is, and when the run began."""

FOLDER = pytest.StashKey[Path]()
"""The folder of the run's file, whether it is there or not; on the main process, once there is a
worker to tell."""
FILE = pytest.StashKey["LedgerFile"]()
STARTED = pytest.StashKey[float]()
"""When the session began, on the clock that all processes of a machine have in common."""

clock = time.monotonic


def amount(text: str) -> float:
    """Return an amount; raises argparse's error, which pytest prints as usage."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise argparse.ArgumentTypeError(f"give a number, 0 or more (got {text!r})")
    return number


def whole_amount(text: str) -> int:
    """Return a whole amount; raises as `amount` does."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"give a whole number, 0 or more (got {text!r})")
    return int(text)


KINDS = tuple(kind for kind in SUITE_BUDGET_KINDS if kind.spent)
"""The budgets at which a running suite stops."""


def add_options(parser: pytest.Parser) -> None:
    """Add an option and an ini setting for each budget of the suite."""
    group = parser.getgroup("episodes")
    for kind in KINDS:
        option = "--" + kind.name.replace("_", "-")
        group.addoption(option, metavar=kind.metavar, type=_reader(kind), help=kind.option_help)
        parser.addini(kind.name, f"as {option}", default="")


def _reader(kind: SuiteBudgetKind) -> Callable[[str], float]:
    return whole_amount if kind.is_whole else amount


def configure(config: pytest.Config) -> None:
    """Keep the budgets of the suite where there are any. Raises pytest.UsageError."""
    given = {kind.name: _given(config, kind) for kind in KINDS}
    limits = {name: limit for name, limit in given.items() if limit is not None}
    if config.option.collectonly or not limits:
        return
    from ci_agent_eval.pytest_plugin.budgets.stop import BudgetStop  # noqa: PLC0415 - if needed
    from ci_agent_eval.storage.ledger.limits import SuiteLimits  # noqa: PLC0415 - as above

    config.pluginmanager.register(BudgetStop(config, SuiteLimits(limits)), NAME)


def _given(config: pytest.Config, kind: SuiteBudgetKind) -> float | None:
    option: float | None = getattr(config.option, kind.name)
    if option is not None:
        return option
    text = str(config.getini(kind.name)).strip()
    try:
        return _reader(kind)(text) if text else None
    except argparse.ArgumentTypeError as error:
        raise pytest.UsageError(f"ini setting {kind.name}: {error}") from None


def tell_worker(node: Any) -> None:
    """Tell an xdist worker where the run's file is; it is made by whoever needs it first."""
    config: pytest.Config = node.config
    if FOLDER not in config.stash:
        folder = Path(tempfile.gettempdir()) / f"agent-eval-run-{os.urandom(16).hex()}"
        config.stash[FOLDER] = folder
        config.add_cleanup(functools.partial(shutil.rmtree, folder, ignore_errors=True))
    told = {
        "folder": str(config.stash[FOLDER]),
        "machine": platform.node(),
        "started": config.stash.get(STARTED, None),
    }
    node.workerinput[WORKER_LEDGER] = told


def started(config: pytest.Config) -> float:
    """Return when the session began, the main process's; now, on another machine."""
    if is_worker(config) and ledger_file(config) is not None:
        told: float = _told(config)["started"]
        return told
    return config.stash.setdefault(STARTED, clock())


def ledger_file(config: pytest.Config) -> LedgerFile | None:
    """Return the file that this process shares with others; None where it is alone.

    A worker on another machine is alone, too.
    """
    if FILE in config.stash:
        return config.stash[FILE]
    folder = config.stash.get(FOLDER, None)
    if is_worker(config) and _told(config)["machine"] == platform.node():
        folder = Path(_told(config)["folder"])
    if folder is None:
        return None
    from ci_agent_eval.storage.ledger.file import LedgerFile  # noqa: PLC0415 - inert until used

    config.stash[FILE] = LedgerFile(folder)
    config.add_cleanup(config.stash[FILE].close)
    return config.stash[FILE]


def _told(config: pytest.Config) -> dict[str, Any]:
    told: dict[str, Any] = config.workerinput[WORKER_LEDGER]  # type: ignore[attr-defined]
    return told


def windows(config: pytest.Config) -> Callable[[str], SharedWindows] | None:
    """Return what makes the rate limits of a provider; None where no other process has any."""
    file = ledger_file(config)
    if file is None:
        return None
    from ci_agent_eval.storage.ledger.shared import SharedWindows  # noqa: PLC0415 - inert until used

    return lambda provider: SharedWindows(file, provider, clock)


def stop_of(config: pytest.Config) -> BudgetStop | None:
    """Return what stops the run at its budgets; None where it has none."""
    found: BudgetStop | None = config.pluginmanager.get_plugin(NAME)
    return found


def on_spent(config: pytest.Config) -> Callable[[str, object, Spent | None], None] | None:
    """Return what the engine tells of each answer; None where nobody asks."""
    found = stop_of(config)
    return None if found is None else found.kept.accounts.run


def of(config: pytest.Config) -> SuiteBudgets | None:
    """Return the budgets of the running suite; None where it has none."""
    found = stop_of(config)
    return None if found is None else found.kept.budgets
