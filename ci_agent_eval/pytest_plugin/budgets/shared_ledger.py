"""The ledger file that the processes of a run share, and its location.

Imported at every start of pytest, so it imports only modules that an unrelated suite loads anyway.
`docs/decisions/0027-run-ledger.md` explains why a file is used.
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
"""Key of an xdist worker's input: the folder of the run's ledger and the run's start time."""

FOLDER = pytest.StashKey[Path]()
"""The folder of the run's ledger, which may not exist yet; set on the main process as soon as it
has an xdist worker."""
FILE = pytest.StashKey["LedgerFile"]()
STARTED = pytest.StashKey[float]()
"""When the session began, on the clock that all processes of a machine share."""

clock = time.monotonic


def send_ledger_to_worker(node: Any) -> None:
    """Send an xdist worker the ledger folder; the first process to need the file creates it."""
    config: pytest.Config = node.config
    if FOLDER not in config.stash:
        folder = Path(tempfile.gettempdir()) / f"agent-eval-run-{os.urandom(16).hex()}"
        config.stash[FOLDER] = folder
        config.add_cleanup(functools.partial(shutil.rmtree, folder, ignore_errors=True))
    worker_input = {
        "folder": str(config.stash[FOLDER]),
        "machine": platform.node(),
        "started": config.stash.get(STARTED, None),
    }
    node.workerinput[WORKER_LEDGER] = worker_input


def get_start_time(config: pytest.Config) -> float:
    """Return when the main process's session began; on another machine, the current time."""
    if is_worker(config) and get_ledger_file(config) is not None:
        start: float = _get_worker_input(config)["started"]
        return start
    return config.stash.setdefault(STARTED, clock())


def get_ledger_file(config: pytest.Config) -> LedgerFile | None:
    """Return the ledger file shared with other processes, or None if there are none.

    A worker on another machine has none either.
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
    worker_input: dict[str, Any] = config.workerinput[WORKER_LEDGER]  # type: ignore[attr-defined]
    return worker_input


def get_rate_window_factory(config: pytest.Config) -> Callable[[str], SharedRateWindows] | None:
    """Return a function that creates a provider's rate limits, or None for a single process."""
    file = get_ledger_file(config)
    if file is None:
        return None
    from ci_agent_eval.storage.ledger.sqlite_stores import SharedRateWindows  # noqa: PLC0415 - inert until used

    return lambda provider: SharedRateWindows(file, provider, clock)
