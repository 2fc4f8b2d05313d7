"""The reasons for which an episode fails its test, as lines of the failure message."""

from __future__ import annotations

from collections.abc import Sequence

from ci_agent_eval.contract.episode import Assertion, Episode, Outcome, describe_violation
from ci_agent_eval.contract.stops import AGENT_FINISHED
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


def describe_unentered_turn(message: str) -> str:
    """Describe a turn that was opened without `with` and therefore not recorded."""
    return (
        f"no evidence: the turn {message[:MAX_MESSAGE_CHARACTERS]!r} was opened without `with`, so "
        "it was not recorded; write `with episode.turn(...) as turn:`"
    )
