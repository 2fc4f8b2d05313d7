"""How a JUnit case went by its attributes `status` and `result`, whoever wrote them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ci_agent_eval.contract.episode import Outcome

SEVERITY: Mapping[Outcome, int] = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}
"""The worst of several outcomes is the one that counts."""

_STATUS_OUTCOMES: dict[str, Outcome] = {
    # Producers that write how a case went as an attribute only: GoogleTest, tst and others.
    # A word that is not here says nothing good: it makes the case an error.
    **dict.fromkeys(("run", "completed", "ok", "finished"), "passed"),
    **dict.fromkeys(("passed", "pass", "success", "successful", "succeeded"), "passed"),
    **dict.fromkeys(("skipped", "skip", "disabled", "suppressed", "notrun"), "skipped"),
    **dict.fromkeys(("notexecuted", "ignored", "ignore", "pending", "todo"), "skipped"),
    **dict.fromkeys(("failed", "failure", "fail"), "failed"),
    **dict.fromkeys(("error", "errored"), "error"),
}
_WITHOUT_SPACES = str.maketrans("", "", " -_")


class StatedOutcome(NamedTuple):
    """What the attributes `status` and `result` say; the worse where they differ."""

    outcome: Outcome = "passed"
    message: str | None = None
    """Says the word, where it is none of the usual ones."""
    is_said: bool = False


PASSED = StatedOutcome()


def parse_status_attributes(attributes: Mapping[str, str]) -> StatedOutcome:
    """Read the attributes; passed where they say nothing, an error where they are unclear."""
    worst = PASSED
    for name in ("status", "result"):
        stated = _parse_status_word(name, attributes.get(name, "").strip())
        if SEVERITY[stated.outcome] > SEVERITY[worst.outcome] or not worst.is_said:
            worst = stated
    return worst


def _parse_status_word(name: str, word: str) -> StatedOutcome:
    if not word:
        return PASSED
    outcome = _STATUS_OUTCOMES.get(word.lower().translate(_WITHOUT_SPACES))
    if outcome is not None:
        return StatedOutcome(outcome, is_said=True)
    return StatedOutcome("error", f"its {name} is {word[:80]!r}, which is no success", is_said=True)
