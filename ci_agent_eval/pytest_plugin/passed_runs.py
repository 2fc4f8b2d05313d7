"""Recording of a full run that passed, for the steering message of the next one."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.affected.deadline import Deadline
from ci_agent_eval.steering.affected.working_tree import find_working_tree
from ci_agent_eval.steering.passed_run import CACHE_KEY, PassedRun
from ci_agent_eval.steering.policy.detection import detect_in_argv
from ci_agent_eval.steering.settings_loader import load_steering_settings

TIME_LIMIT_S = 10.0
"""Seconds that hashing the project's files may take, before and after the run."""


def watch_full_run(config: pytest.Config) -> None:
    """Register a recorder if this is a full run in a project that enables steering."""
    selection = _get_selection(config)
    if selection is None or not _is_enabled(config):
        return
    tree = _compute_digest(config.rootpath)
    if tree is not None:
        config.pluginmanager.register(PassedRunRecorder(tree, selection))


class PassedRunRecorder:
    """Counts passed tests, and writes the record if the run passed and no file changed."""

    def __init__(self, tree: str, selection: tuple[str, ...]) -> None:
        self._tree = tree
        self._selection = selection
        self._started = time.monotonic()
        self._passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a passed test."""
        self._passed += report.when == "call" and report.passed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the record to pytest's cache."""
        cache = session.config.cache
        seconds = time.monotonic() - self._started
        if exitstatus != 0 or cache is None:
            return
        if _compute_digest(session.config.rootpath) == self._tree:
            record = PassedRun(self._tree, self._selection, self._passed, seconds, time.time())
            cache.set(CACHE_KEY, record.to_json())


def _get_selection(config: pytest.Config) -> tuple[str, ...] | None:
    """Return what selects tests in a full run of the whole project; None for other runs."""
    invocation = config.invocation_params
    if invocation.dir != config.rootpath or os.environ.get("PYTEST_ADDOPTS"):
        return None
    result = detect_in_argv(["pytest", *map(str, invocation.args)])
    return result.intents[0].selection if result.full_suite else None


def _is_enabled(config: pytest.Config) -> bool:
    enabled: bool | None = config.option.pytest_full_suite_steering
    try:
        return load_steering_settings(
            root=config.rootpath, environ=os.environ, enabled=enabled
        ).enabled
    except InputError:
        return False  # an invalid file is reported where the settings are used


def _compute_digest(folder: Path) -> str | None:
    try:
        return find_working_tree(folder, os.environ, Deadline(TIME_LIMIT_S)).compute_digest()
    except (OSError, subprocess.SubprocessError):
        return None
