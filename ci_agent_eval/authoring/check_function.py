"""`check(...)`: an assertion from a boolean, a score, or a Check."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import sys
from collections.abc import Awaitable, Iterable, Sequence
from types import FrameType
from typing import Any, Protocol, SupportsFloat, overload

from ci_agent_eval.checks.base import Check
from ci_agent_eval.checks.conversion import as_check, validate_assertions
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.wording import shorten_text
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.active_episode import (
    RunningEpisode,
    get_active_episode,
    require_await,
)
from ci_agent_eval.recording.check_value import (
    add_location,
    parse_score,
    parse_threshold,
    prefix_names,
)

_LONGEST = 200
"""Characters of source text in the name of an assertion."""

_SourceLocation = tuple[str, int] | None
"""File and line."""


class CheckFailed(AssertionError):  # noqa: N818 - a failure is no error
    """Raised by `check` for a failure in a strict test, or outside of an episode."""

    def __init__(self, message: str, *, is_recorded: bool) -> None:
        super().__init__(message)
        self.is_recorded = is_recorded
        """Whether the running episode has the assertion already."""


class _SyncCheck(Protocol):
    """A check that returns its assertions."""

    def assertions(self, episode: Episode) -> Iterable[Assertion]: ...


class _AsyncCheck(Protocol):
    """A check that returns an awaitable."""

    def assertions(self, episode: Episode) -> Awaitable[Iterable[Assertion]]: ...


class _Evaluator(Protocol):
    """An evaluator of pydantic-evals."""

    def evaluate(self, ctx: Any, /) -> Any: ...


@overload
def check(
    value: SupportsFloat,
    description: str | None = None,
    *,
    threshold: float | None = None,
    reason: str | None = None,
) -> bool: ...


@overload
def check(value: _SyncCheck, description: str | None = None) -> bool: ...


@overload
def check(value: _AsyncCheck, description: str | None = None) -> Awaitable[bool]: ...


# Only the call shows whether these need `await`.
@overload
def check(value: Check | _Evaluator, description: str | None = None) -> Any: ...


def check(
    value: SupportsFloat | Check | _SyncCheck | _AsyncCheck | _Evaluator,
    description: str | None = None,
    *,
    threshold: float | None = None,
    reason: str | None = None,
) -> bool | Awaitable[bool]:
    """Record an assertion in the running episode, and return whether it passed.

    `value` is True or False; or a number from 0 to 1, which passes at `threshold` or above
    (default 1); or a Check, which examines the episode so far (await one that asks a model:
    `await check(…)`). `description` defaults to the source text of the value.

    In an evaluation a failure is recorded and the test continues. In a strict test it is
    recorded and raises AssertionError; outside of an episode it only raises. Raises InputError
    for any other value.
    """
    __tracebackhide__ = True
    caller = _find_caller()
    if (check_ := as_check(value)) is not None:
        if threshold is not None or reason is not None:
            raise InputError(
                "check(...): a Check brings its own threshold and reason; leave them out"
            )
        return _apply_check(check_, description, caller)
    name = description or _find_source_text(caller)
    score = parse_score(name, value)
    required = 1.0 if threshold is None else parse_threshold(name, threshold)
    assertion = Assertion(
        name=clean_text(name),
        passed=score >= required,
        score=score,
        reason=_describe_result(value, score, required, reason),
    )
    return _record_assertions([assertion], _find_location(caller))


def _describe_result(value: object, score: float, required: float, given: str | None) -> str | None:
    """Return the given reason, with the figures of a partial score; None if there is neither."""
    is_plain = isinstance(value, bool) or (score in {0.0, 1.0} and required == 1)
    parts = [clean_text(given)] if given else []
    if not is_plain:
        parts.append(f"score {_format_score(score)}, needed {_format_score(required)}")
    return "; ".join(parts) or None


def _format_score(score: float) -> str:
    return f"{math.floor(score * 10_000) / 10_000:g}"


def _apply_check(
    check_: Check | _SyncCheck | _AsyncCheck, prefix: str | None, caller: FrameType
) -> bool | Awaitable[bool]:
    """Apply a Check to the running episode so far."""
    __tracebackhide__ = True
    episode = get_active_episode()
    if episode is None or episode.recorder is None:
        raise InputError(
            "check(...): a Check looks at an episode, and none is running here; call it in a test "
            "with the fixture `episode`, or of an evaluation"
        )
    assertions, place = check_.assertions(episode.recorder.snapshot()), _find_location(caller)
    if inspect.isawaitable(assertions):
        location = f" ({place[0]}:{place[1]})" if place else ""
        recorded = _record_awaited(check_, assertions, prefix, place)
        return require_await("check", recorded, location, awaits=assertions)
    return _record_assertions(prefix_names(validate_assertions(check_, assertions), prefix), place)


async def _record_awaited(
    check_: object,
    assertions: Awaitable[Iterable[Assertion]],
    prefix: str | None,
    place: _SourceLocation,
) -> bool:
    __tracebackhide__ = True
    found = validate_assertions(check_, await assertions)
    return _record_assertions(prefix_names(found, prefix), place)


def _record_assertions(assertions: Sequence[Assertion], place: _SourceLocation) -> bool:
    """Record assertions. Raises CheckFailed for a failure in a strict test or outside of any."""
    __tracebackhide__ = True
    episode = get_active_episode()
    for assertion in add_location(assertions, place):
        if episode is not None:
            episode.record_assertion(assertion)
    failed = [a for a in assertions if not a.passed and a.severity == "error"]
    if failed and (episode is None or episode.mode == "strict"):
        message = "\n".join(map(_format_failure, failed))
        raise CheckFailed(message, is_recorded=_is_recorded(episode))
    return all(assertion.passed for assertion in assertions)


def _is_recorded(episode: RunningEpisode | None) -> bool:
    """Return whether the episode keeps a recorded assertion."""
    return episode is not None and not episode.counts_once


def _find_location(caller: FrameType) -> _SourceLocation:
    episode = get_active_episode()
    return None if episode is None else episode.locate(caller)


def _format_failure(assertion: Assertion) -> str:
    return f"{assertion.name}: {assertion.reason}" if assertion.reason else assertion.name


def _find_caller() -> FrameType:
    """Return the frame outside of this package that called it."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads whole files
    assert frame is not None  # noqa: S101 - somebody called
    while frame.f_back is not None and _is_in_package(frame):
        frame = frame.f_back
    return frame


def _is_in_package(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "ci_agent_eval"


def _find_source_text(caller: FrameType) -> str:
    """Return the source text of the call's value, or `check` if it is unknown."""
    positions = list(caller.f_code.co_positions())[caller.f_lasti // 2]
    start, end, column, end_column = positions
    if start is None or end is None:
        return "check"
    name = caller.f_code.co_filename
    lines = [line.encode() for line in linecache.getlines(name)[start - 1 : end]]
    if not lines:
        return "check"
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column or 0 :]
    return _find_first_argument(b"".join(lines).decode(errors="replace").strip())


def _find_first_argument(statement: str) -> str:
    """Return the text of the first argument of the outermost `check` call in a statement."""
    # In a function, because the statement may contain `await`.
    text = f"async def f(): {statement}"
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return "check"
    # `ast.walk` yields the outermost call first.
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_check(node)]
    named = [k.value for call in calls[:1] for k in call.keywords if k.arg == "value"]
    given = [*(calls[0].args[:1] if calls else ()), *named]
    if not given:
        return "check"
    return shorten_text(ast.get_source_segment(text, given[0]) or "check", _LONGEST)


def _is_check(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else None
    return (call.func.id if isinstance(call.func, ast.Name) else name) == "check"
