"""Values of a check: True or False, a number with a threshold, the result of a Check."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Sequence
from numbers import Number
from typing import TYPE_CHECKING, Any, SupportsFloat

from ci_agent_eval.contract.episode import Assertion, Episode, Outcome, Severity, describe_violation
from ci_agent_eval.contract.evidence import EvidencePart
from ci_agent_eval.contract.fields import Texts, validate_value
from ci_agent_eval.contract.jsonable import clean_optional_text, clean_text
from ci_agent_eval.contract.state import WatchedState
from ci_agent_eval.contract.stops import AGENT_FINISHED, StopReason
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.budgets import build_value

if TYPE_CHECKING:
    from ci_agent_eval.state.sources import StateWatch


def build_assertions(
    name: str,
    value: object,
    *,
    reason: object = None,
    score: float | None = None,
    threshold: float | None = None,
    severity: Severity = "error",
) -> list[Assertion]:
    """Build the assertions of a checked value. Raises InputError for an invalid value."""
    if found := _get_check_assertions(value):
        if (reason, score, threshold, severity) != (None, None, None, "error"):
            raise InputError(
                f"check {name!r}: what a Check found brings its own reason, score, threshold and "
                "severity; leave them out"
            )
        return prefix_names(found, name)
    if threshold is None:
        passed = parse_passed(name, value)
    elif score is None:
        score = parse_score(name, value)
        passed = score >= parse_threshold(name, threshold)
    else:
        raise InputError(f"check {name!r}: with `threshold` the value is the score; give it once")
    assertion = build_value(
        f"check {name!r}",
        Assertion,
        name=clean_text(name),
        passed=passed,
        score=score,
        threshold=threshold,
        reason=clean_optional_text(reason),
        severity=severity,
    )
    return [assertion]


def _get_check_assertions(value: object) -> tuple[Assertion, ...]:
    """Return the assertions of a Check's result; empty for any other value."""
    found = value if isinstance(value, tuple | list) else (value,)
    return tuple(found) if all(isinstance(each, Assertion) for each in found) else ()


def parse_passed(name: str, value: object) -> bool:
    """Return a bool. Raises InputError for any other value, even a truthy one."""
    _refuse_uncalled(name, value, "`passed`")
    if not is_bool(value):
        raise InputError(
            f"check {name!r}: `passed` is {_describe_value(value)}; give True or False, a number "
            "from 0 to 1 with `threshold`, or what a Check found (check(...) applies one)"
        )
    return bool(value)


def is_bool(value: object) -> bool:
    """Return whether the value is a bool of Python or NumPy, without importing NumPy."""
    numpy: Any = sys.modules.get("numpy")
    return isinstance(value, bool) or (numpy is not None and isinstance(value, numpy.bool_))


def parse_score(name: str, value: object, subject: str = "the value") -> float:
    """Return a score from 0 to 1. Raises InputError for any other value."""
    _refuse_uncalled(name, value, subject)
    if not is_bool(value) and not isinstance(value, Number):
        raise InputError(
            f"check {name!r}: {subject} is {_describe_value(value)}; give True or False, a "
            "number from 0 to 1, or a Check"
        )
    score = float(value) if isinstance(value, SupportsFloat) else math.nan
    if not 0 <= score <= 1:
        raise InputError(f"check {name!r}: {subject} must be from 0 to 1 (got {value})")
    return score


def parse_threshold(name: str, value: object) -> float:
    """Return a threshold above 0, up to 1. Raises InputError for any other value."""
    threshold = parse_score(name, value, "the threshold")
    if threshold == 0:
        raise InputError(
            f"check {name!r}: the threshold is 0, which everything reaches; give one above 0, "
            "or record the figure with episode.score(...)"
        )
    return threshold


def prefix_names(found: Sequence[Assertion], prefix: str | None) -> list[Assertion]:
    """Return the assertions with a prefix before their names; None adds no prefix."""
    if prefix is None:
        return list(found)
    return [a.model_copy(update={"name": f"{clean_text(prefix)}: {a.name}"}) for a in found]


def add_location(found: Sequence[Assertion], location: tuple[str, int] | None) -> list[Assertion]:
    """Set file and line of the assertions that have no location."""
    file, line = location or (None, None)
    location_fields = {"file": file, "line": line}
    return [a if a.file is not None else a.model_copy(update=location_fields) for a in found]


def _refuse_uncalled(name: str, value: object, subject: str) -> None:
    """Refuse a function or a coroutine that was not called or awaited."""
    if inspect.isawaitable(value) or callable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise InputError(
            f"check {name!r}: {subject} is of type {type(value).__name__}, which is always true; "
            "call or await it first"
        )


def _describe_value(value: object) -> str:
    """Return the type of a value; a short plain value is included."""
    kind = type(value).__name__
    is_plain = isinstance(value, str | int | float) and len(repr(value)) <= 40
    return f"of type {kind}{f' ({value!r})' if is_plain else ''}"


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


class WatchedStates:
    """Compares the watched values, folders and databases with their first snapshots."""

    def __init__(self) -> None:
        self._watches: list[StateWatch] = []
        self._returned: tuple[WatchedState, ...] = ()
        self._final: tuple[WatchedState, ...] | None = None

    def add(self, state: object, name: str | None, ignore: str | Sequence[str]) -> None:
        """Take the first snapshot. Raises InputError if that fails, or the name is taken."""
        from ci_agent_eval.state.sources import watch_state  # noqa: PLC0415 - imports SQLite

        ignored = validate_value("episode.watch", "ignore", Texts, ignore)
        watch = watch_state(state, clean_optional_text(name), ignored)
        if any(watch.source.name == known.source.name for known in self._watches):
            raise InputError(
                f"episode.watch: a state {watch.source.name!r} is watched already; give this one "
                "another name"
            )
        self._watches.append(watch)

    def merge(self, returned: Sequence[WatchedState]) -> None:
        """Add the states of a finished episode from elsewhere."""
        self._returned += tuple(returned)

    def compare(self) -> tuple[WatchedState, ...]:
        """Return the changes until now; after the end of the test, those at its end."""
        own = self._final
        if own is None:
            own = tuple(watch.compare() for watch in self._watches)
        return (*own, *self._returned)

    def end(self) -> str | None:
        """Compare for the last time, because fixtures may close a database afterwards.

        Returns why final states are unknown, if they are.
        """
        if self._final is None:
            self._final = self.compare()[: len(self._watches)]
        return "; ".join(list_state_errors(self.compare())) or None


def list_state_errors(states: Sequence[WatchedState]) -> list[str]:
    """Return why final states are unknown."""
    return [state.error for state in states if state.error]
