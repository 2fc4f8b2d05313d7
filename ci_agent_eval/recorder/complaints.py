"""Why an episode fails its test, in the words of the failure message."""

from __future__ import annotations

from ci_agent_eval.contract.episode import Assertion, Episode, describe_violation


def complaints(episode: Episode) -> tuple[str, ...]:
    """List what fails the test: failed checks with their place, hard budgets, no evidence."""
    checks = [_complaint(assertion) for assertion in episode.failed_assertions]
    budgets = [f"budget {describe_violation(v)}" for v in episode.violations if v.hard]
    missing = [episode.reason] if episode.missing_evidence and episode.reason else []
    return (*checks, *budgets, *missing)


def _complaint(assertion: Assertion) -> str:
    place = f"{assertion.file}:{assertion.line}: " if assertion.file else ""
    reason = f": {assertion.reason}" if assertion.reason else ""
    return f"{place}{assertion.name}{reason}"
