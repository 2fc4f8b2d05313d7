"""Recording of a full run that passed, for the steering message of the next one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.affected.deadline import Deadline
from ci_agent_eval.steering.affected.working_tree import find_working_tree
from ci_agent_eval.steering.passed_run import (
    CACHE_KEY,
    PassedRun,
    RunConditions,
    compute_environment_digest,
)
from ci_agent_eval.steering.policy.detection import detect_in_argv
from ci_agent_eval.steering.policy.pytest_arguments import may_change_outcome
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.settings_loader import load_steering_settings

TIME_LIMIT_S = 10.0
"""Seconds that hashing the project's files may take, before and after the run."""


def watch_full_run(config: pytest.Config) -> None:
    """Register a recorder if this is a full run in a project that does not disable steering."""
    selection = _get_selection(config)
    if selection is None or _is_narrowed(config) or not _is_enabled(config):
        return
    tree = _compute_digest(config.rootpath)
    if tree is not None:
        environment = compute_environment_digest(os.environ)
        conditions = RunConditions(tree, environment, selection)
        config.pluginmanager.register(PassedRunRecorder(conditions))


class PassedRunRecorder:
    """Counts passed tests, and writes the record if all tests passed and no file changed."""

    def __init__(self, conditions: RunConditions) -> None:
        self._conditions = conditions
        self._started = time.monotonic()
        self._passed = 0
        self._has_deselected = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a passed test."""
        self._passed += report.when == "call" and report.passed

    def pytest_deselected(self) -> None:
        """Remember that a part of the tests does not run; which part may depend on earlier runs."""
        self._has_deselected = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the record to pytest's cache."""
        cache: pytest.Cache | None = getattr(session.config, "cache", None)  # -p no:cacheprovider
        seconds = time.monotonic() - self._started
        if exitstatus != 0 or cache is None or self._has_deselected:
            return
        if _compute_digest(session.config.rootpath) == self._conditions.tree:
            programs = str(Path(sys.executable).parent.resolve())
            record = PassedRun(self._conditions, programs, self._passed, seconds, time.time())
            # Without a record, the next run is only not offered this one's result.
            with suppress(OSError, ValueError, pytest.PytestWarning):
                cache.set(CACHE_KEY, record.to_json())


def _get_selection(config: pytest.Config) -> tuple[str, ...] | None:
    """Return what selects tests in a full run of the whole project; None for other runs."""
    invocation = config.invocation_params
    words = [str(word) for word in invocation.args]
    if invocation.dir != config.rootpath or os.environ.get("PYTEST_ADDOPTS"):
        return None
    result = detect_in_argv(["pytest", *words])
    if not result.full_suite or may_change_outcome(words):
        return None
    return result.intents[0].selection


def _is_narrowed(config: pytest.Config) -> bool:
    """Return whether pytest's configuration narrows the run, such as `addopts = --sw`.

    Tests that a worker of xdist deselects are not reported to this process.
    """
    options = config.getini("addopts")
    is_stepwise = bool(config.getoption("stepwise", default=False))
    return is_stepwise or not detect_in_argv(["pytest", *options]).full_suite


def _is_enabled(config: pytest.Config) -> bool:
    """Return whether nothing disables steering; `steer install` enables it in the hook alone."""
    enabled: bool | None = config.option.pytest_full_suite_steering
    try:
        return load_steering_settings(
            root=config.rootpath,
            environ=os.environ,
            enabled=enabled,
            default=SteeringSettings(enabled=True),
        ).enabled
    except InputError:
        return False  # an invalid file is reported where the settings are used


def _compute_digest(folder: Path) -> str | None:
    try:
        return find_working_tree(folder, os.environ, Deadline(TIME_LIMIT_S)).compute_digest()
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
