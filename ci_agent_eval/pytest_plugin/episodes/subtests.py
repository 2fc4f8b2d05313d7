"""Subtests of an episode: a failed one is a failed assertion, a broken one an error.

pytest makes a report of each while the test still runs. When it is made its name is not
known yet; when it is logged, a moment later, it is (`_pytest/subtests.py`).
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
    shown = ", ".join(f"{name}={value}" for name, value in parameters.items())
    parts = [str(message) if message else "", f"({shown})" if shown else ""]
    text = " ".join(part for part in parts if part) or "subtest"
    return truncate_text(remove_addresses(clean_text(text)), MAX_NAME)


def record_subtest(state: EpisodeItem, name: str) -> None:
    """Put the subtest that has just ended badly into its episode."""
    ending, state.subtest = state.subtest, None
    if ending is None:
        return
    if ending.assertion is not None and state.recorder is not None:
        state.recorder.keep(ending.assertion.model_copy(update={"name": name}))
    else:
        state.subtest_errors.append(f"in subtest {name}: {ending.reason}")


def is_of_subtest(state: EpisodeItem, error: BaseException) -> bool:
    """Say whether a subtest raised it: with `-x` it goes on to end the test, too."""
    return any(error is known for known in state.subtest_failures)


def get_ending_after_subtests(state: EpisodeItem, ending: Ending | None = None) -> Ending:
    """Return how a test ended that came to its own end: by its broken subtests, if any."""
    if state.subtest_errors:
        return Ending("error", "; ".join(state.subtest_errors))
    return ending or Ending("passed")


def add_subtest_endings(ending: Ending, subtests: Sequence[Ending]) -> Ending:
    """Return how a test without an episode ended, given its subtests that ended badly.

    What the test itself failed of comes first; a failed subtest stands over a broken one.
    """
    if not subtests or ending.outcome in {"failed", "error"}:
        return ending
    outcome: Outcome = "failed" if any(each.outcome == "failed" for each in subtests) else "error"
    return Ending(outcome, "; ".join(f"in a subtest: {each.reason}" for each in subtests))
