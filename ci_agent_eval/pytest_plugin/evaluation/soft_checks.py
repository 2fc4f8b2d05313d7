"""Soft checks of pytest-check, `check.equal(1, 2)`: each is an assertion, passed or failed.

pytest-check collects its failures; of a check that passed it keeps nothing: `library_assertions`
reports those.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.pytest_plugin.collection.detection import EpisodeItem
from ci_agent_eval.pytest_plugin.episodes.endings import MAX_NAME, shorten_message, truncate_text
from ci_agent_eval.pytest_plugin.evaluation.measurement import is_measured


def get_soft_failure_log(config: pytest.Config) -> Any:
    """Return the module in which pytest-check collects failures, or None if it is not in use."""
    plugin: Any = sys.modules.get("pytest_check.plugin")
    is_used = plugin is not None and config.pluginmanager.is_registered(plugin)
    return plugin.check_log if is_used else None


def record_soft_failures(item: pytest.Item, state: EpisodeItem) -> None:
    """Record the failures that pytest-check collected, before it fails the test.

    In an evaluation they must not fail the test: they are measured.
    """
    log = get_soft_failure_log(item.config)
    if log is None or state.recorder is None:
        return
    failures = log.get_failures()
    for failure in failures:
        state.recorder.record_assertion(_parse_failure(failure))
    if (hidden := _count_failures(log) - len(failures)) > 0:
        # `check.set_max_report(1)` hides the others, and with 0 pytest-check fails no test.
        name = f"failed checks beyond pytest-check's max_report: {hidden}; raise it to see them"
        state.recorder.record_assertion(Assertion(name=name, passed=False))
    if is_measured(item, state):
        log.clear_failures()


def _count_failures(log: Any) -> int:
    """Return how many checks failed, reported or not; pytest-check before 2.5 has no function."""
    count = getattr(log, "get_num_failures", None)
    return int(log._num_failures if count is None else count())  # noqa: SLF001 - as above


def _parse_failure(failure: str) -> Assertion:
    """Parse a failure of pytest-check: its first line is the assertion, the rest its location."""
    name, _, location = shorten_message(failure).removeprefix("FAILURE: ").partition("\n")
    return Assertion(
        name=truncate_text(name, MAX_NAME), passed=False, reason=location.strip() or None
    )
