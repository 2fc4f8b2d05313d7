"""How an episode ends, and the reasons for which it fails its test."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.contract.episode import Assertion, Episode, Outcome, describe_violation
from ci_agent_eval.contract.evidence import EvidencePart
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.stops import AGENT_FINISHED, StopReason
from ci_agent_eval.recording.watched_states import list_state_errors

MAX_MESSAGE_CHARACTERS = 80
"""Characters of the user's message that a reason quotes."""


def list_failure_reasons(episode: Episode) -> tuple[str, ...]:
    """List failed checks with their location, exceeded hard budgets and all that is unproven."""
    checks = [_describe_failed_assertion(assertion) for assertion in episode.failed_assertions]
    budgets = [f"budget {describe_violation(v)}" for v in episode.violations if v.hard]
    missing = [episode.reason] if episode.missing_evidence and episode.reason else []
    return (*checks, *budgets, *missing, *list_state_errors(episode.states))


def _describe_failed_assertion(assertion: Assertion) -> str:
    place = f"{assertion.file}:{assertion.line}: " if assertion.file else ""
    reason = f": {assertion.reason}" if assertion.reason else ""
    return f"{place}{assertion.name}{reason}"


def build_stop_assertion(reason: StopReason, error: str | None) -> Assertion:
    """Return the failed assertion for a run that ended without an answer."""
    description = f"{reason}: {clean_text(error)}" if error else reason
    return Assertion(name=AGENT_FINISHED, passed=False, reason=description)


def decide_ending(
    outcome: Outcome,
    reason: str | None,
    *,
    failed_checks: Sequence[Assertion],
    unentered_message: str | None,
    unreadable_state: str | None,
) -> dict[str, object]:
    """Return the outcome, the reason and the missing evidence of an episode whose test ended so.

    `unentered_message` is the message of a turn that was opened without `with`;
    `unreadable_state` describes the watched states that could not be read.
    """
    missing: tuple[EvidencePart, ...] = ()
    if failed_checks:
        outcome, reason = "failed", describe_failed_checks(failed_checks, outcome, reason)
    elif unentered_message is not None and outcome == "passed":
        missing, reason = ("turn",), _describe_unentered_turn(unentered_message)
    if unreadable_state and outcome == "passed":
        outcome, reason = "error", unreadable_state
    return {"outcome": outcome, "reason": reason, "missing_evidence": missing}


def describe_failed_checks(
    failed: Sequence[Assertion], outcome: Outcome, reason: str | None
) -> str:
    """Describe the failed checks and the end of the episode after them."""
    checks = f"failed: {'; '.join(map(_name_failed_check, failed))}"
    if outcome == "passed" or (outcome == "failed" and reason is None):
        return checks
    skipped = "skipped" if outcome == "skipped" else ""
    return f"{checks}; then {': '.join(part for part in (skipped, reason) if part) or outcome}"


def _name_failed_check(check: Assertion) -> str:
    """Return a check's name, with the reason if the run did not finish."""
    return f"{check.name} ({check.reason})" if check.name == AGENT_FINISHED else check.name


def _describe_unentered_turn(message: str) -> str:
    """Describe a turn that was opened without `with` and therefore not recorded."""
    return (
        f"no evidence: the turn {message[:MAX_MESSAGE_CHARACTERS]!r} was opened without `with`, so "
        "it was not recorded; write `with episode.turn(...) as turn:`"
    )
