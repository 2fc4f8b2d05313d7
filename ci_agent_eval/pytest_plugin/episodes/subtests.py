"""Subtests of an episode: a failed one is a failed assertion, a broken one an error.

pytest creates each report while the test still runs. Its name is not known when it is created, but
it is when the report is logged, a moment later (`_pytest/subtests.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ci_agent_eval.contract.episode import Outcome
from ci_agent_eval.contract.jsonable import clean_text, remove_addresses
from ci_agent_eval.pytest_plugin.collection.detection import EpisodeItem
from ci_agent_eval.pytest_plugin.episodes.endings import MAX_NAME, Ending, truncate_text


def format_subtest_name(report: pytest.TestReport) -> str:
    """Return the message of a subtest and its parameters, as pytest shows them."""
    context = getattr(report, "context", None)
    message = getattr(context, "msg", None)
    parameters = getattr(context, "kwargs", None) or {}
    parameters_text = ", ".join(f"{name}={value}" for name, value in parameters.items())
    parts = [str(message) if message else "", f"({parameters_text})" if parameters_text else ""]
    text = " ".join(part for part in parts if part) or "subtest"
    return truncate_text(remove_addresses(clean_text(text)), MAX_NAME)


def record_subtest(state: EpisodeItem, name: str) -> None:
    """Add the subtest that has just failed or broken to its episode."""
    ending, state.subtest = state.subtest, None
    if ending is None:
        return
    if ending.assertion is not None and state.recorder is not None:
        state.recorder.record_assertion(ending.assertion.model_copy(update={"name": name}))
    else:
        state.subtest_errors.append(f"in subtest {name}: {ending.reason}")


def is_from_subtest(state: EpisodeItem, error: BaseException) -> bool:
    """Return whether a subtest raised the error: with `-x` it ends the test, too."""
    return any(error is known for known in state.subtest_failures)


def get_ending_after_subtests(state: EpisodeItem, ending: Ending | None = None) -> Ending:
    """Return the ending of a test that returned: an error if one of its subtests broke."""
    if state.subtest_errors:
        return Ending("error", "; ".join(state.subtest_errors))
    return ending or Ending("passed")


def add_subtest_endings(ending: Ending, subtests: Sequence[Ending]) -> Ending:
    """Return the ending of a test without an episode, including its failed subtests.

    The test's own failure takes precedence; a failed subtest wins over a broken one.
    """
    if not subtests or ending.outcome in {"failed", "error"}:
        return ending
    outcome: Outcome = "failed" if any(each.outcome == "failed" for each in subtests) else "error"
    return Ending(outcome, "; ".join(f"in a subtest: {each.reason}" for each in subtests))
