"""Parse the attributes `status` and `result` of JUnit cases of any producer. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ci_agent_eval.contract.episode import Outcome

SEVERITY: Mapping[Outcome, int] = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}
"""Order of outcomes; the worst of several counts."""

_STATUS_OUTCOMES: dict[str, Outcome] = {
    # Some producers (GoogleTest, tst and others) write the outcome only as an attribute.
    # An unknown word makes the case an error.
    **dict.fromkeys(("run", "completed", "ok", "finished"), "passed"),
    **dict.fromkeys(("passed", "pass", "success", "successful", "succeeded"), "passed"),
    **dict.fromkeys(("skipped", "skip", "disabled", "suppressed", "notrun"), "skipped"),
    **dict.fromkeys(("notexecuted", "ignored", "ignore", "pending", "todo"), "skipped"),
    **dict.fromkeys(("failed", "failure", "fail"), "failed"),
    **dict.fromkeys(("error", "errored"), "error"),
}
_WITHOUT_SPACES = str.maketrans("", "", " -_")


class StatedOutcome(NamedTuple):
    """The outcome in the attributes `status` and `result`; the worse one if they differ."""

    outcome: Outcome = "passed"
    message: str | None = None
    """Names the word if it is unknown."""
    is_stated: bool = False
    """Whether an attribute is present."""


PASSED = StatedOutcome()


def parse_status_attributes(attributes: Mapping[str, str]) -> StatedOutcome:
    """Parse the attributes: passed if both are missing, an error for an unknown word."""
    worst = PASSED
    for name in ("status", "result"):
        stated = _parse_status_word(name, attributes.get(name, "").strip())
        if SEVERITY[stated.outcome] > SEVERITY[worst.outcome] or not worst.is_stated:
            worst = stated
    return worst


def _parse_status_word(name: str, word: str) -> StatedOutcome:
    if not word:
        return PASSED
    outcome = _STATUS_OUTCOMES.get(word.lower().translate(_WITHOUT_SPACES))
    if outcome is not None:
        return StatedOutcome(outcome, is_stated=True)
    return StatedOutcome(
        "error", f"its {name} is {word[:80]!r}, which is no success", is_stated=True
    )
