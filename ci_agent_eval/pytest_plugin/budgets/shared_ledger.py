"""The ledger that the processes of a run share, and its place.

Imported at every start of pytest, so that it imports only what an unrelated suite has anyway.
`docs/decisions/0027-run-ledger.md` says why there is a file.
"""

from __future__ import annotations

import functools
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.pytest_plugin.options import is_worker

if TYPE_CHECKING:
    from ci_agent_eval.storage.ledger.file import LedgerFile
    from ci_agent_eval.storage.ledger.sqlite_stores import SharedRateWindows

WORKER_LEDGER = "agent_eval_ledger"
"""Key under which an xdist worker is told where the run's file is, and when the run began."""

FOLDER = pytest.StashKey[Path]()
"""The folder of the run's file, whether it is there or not; on the main process, once there is a
worker to tell."""
FILE = pytest.StashKey["LedgerFile"]()
STARTED = pytest.StashKey[float]()
"""When the session began, on the clock that all processes of a machine have in common."""

clock = time.monotonic


def send_ledger_to_worker(node: Any) -> None:
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


def get_start_time(config: pytest.Config) -> float:
    """Return when the session began, the main process's; now, on another machine."""
    if is_worker(config) and ledger_file(config) is not None:
        told: float = _get_worker_input(config)["started"]
        return told
    return config.stash.setdefault(STARTED, clock())


def ledger_file(config: pytest.Config) -> LedgerFile | None:
    """Return the file that this process shares with others; None where it is alone.

    A worker on another machine is alone, too.
    """
    if FILE in config.stash:
        return config.stash[FILE]
    folder = config.stash.get(FOLDER, None)
    if is_worker(config) and _get_worker_input(config)["machine"] == platform.node():
        folder = Path(_get_worker_input(config)["folder"])
    if folder is None:
        return None
    from ci_agent_eval.storage.ledger.file import LedgerFile  # noqa: PLC0415 - inert until used

    config.stash[FILE] = LedgerFile(folder)
    config.add_cleanup(config.stash[FILE].close)
    return config.stash[FILE]


def _get_worker_input(config: pytest.Config) -> dict[str, Any]:
    told: dict[str, Any] = config.workerinput[WORKER_LEDGER]  # type: ignore[attr-defined]
    return told


def get_rate_window_factory(config: pytest.Config) -> Callable[[str], SharedRateWindows] | None:
    """Return what makes the rate limits of a provider; None where no other process has any."""
    file = ledger_file(config)
    if file is None:
        return None
    from ci_agent_eval.storage.ledger.sqlite_stores import SharedRateWindows  # noqa: PLC0415 - inert until used

    return lambda provider: SharedRateWindows(file, provider, clock)
