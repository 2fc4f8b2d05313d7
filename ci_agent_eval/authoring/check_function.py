"""`check(...)`: an assertion that is a value, a share of one, or what a Check finds."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import sys
from collections.abc import Awaitable, Generator, Iterable, Sequence
from types import FrameType
from typing import Any, Protocol, SupportsFloat, overload

from ci_agent_eval.checks.conversion import as_check, validate_assertions
from ci_agent_eval.checks.protocol import Check
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.contract.wording import shorten_text
from ci_agent_eval.errors import InputError
from ci_agent_eval.recording.active_episode import RunningEpisode, get_active_episode
from ci_agent_eval.recording.check_value import (
    add_location,
    parse_score,
    parse_threshold,
    prefix_names,
)

_LONGEST = 200
"""Characters of source text that describe an assertion."""

_SourceLocation = tuple[str, int] | None
"""File and line."""


class CheckFailed(AssertionError):  # noqa: N818 - a failure is no error
    """Raised by `check` where what fails is not measured: in a strict test, or outside of one."""

    def __init__(self, message: str, *, is_recorded: bool) -> None:
        super().__init__(message)
        self.is_recorded = is_recorded
        """The running episode has the assertion already."""


class _SyncCheck(Protocol):
    """A check that answers at once."""

    def assertions(self, episode: Episode) -> Iterable[Assertion]: ...


class _AsyncCheck(Protocol):
    """A check whose answer is awaited."""

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


# Of these only the run tells whether it is awaited.
@overload
def check(value: Check | _Evaluator, description: str | None = None) -> Any: ...


def check(
    value: SupportsFloat | Check | _SyncCheck | _AsyncCheck | _Evaluator,
    description: str | None = None,
    *,
    threshold: float | None = None,
    reason: str | None = None,
) -> bool | Awaitable[bool]:
    """Assert something of the running episode, and say whether it holds.

    `value` is True or False; or a number from 0 to 1, which passes from `threshold` on (default
    1); or a Check, which looks at the episode so far (one that asks a model is awaited:
    `await check(…)`). `description` is by default the source text of the value.

    In an evaluation a failure is recorded and the test goes on. In a strict test it is
    recorded and raises AssertionError; outside of an episode it only raises. Raises InputError
    for a value that is none of these.
    """
    __tracebackhide__ = True
    caller = _find_caller()
    if (found := as_check(value)) is not None:
        if threshold is not None or reason is not None:
            raise InputError(
                "check(...): a Check brings its own threshold and reason; leave them out"
            )
        return _apply_check(found, description, caller)
    name = description or _find_source_text(caller)
    score = parse_score(name, value)
    needed = 1.0 if threshold is None else parse_threshold(name, threshold)
    assertion = Assertion(
        name=clean_text(name),
        passed=score >= needed,
        score=score,
        reason=_describe_result(value, score, needed, reason),
    )
    return _record_assertions([assertion], _find_location(caller))


def _describe_result(value: object, score: float, needed: float, given: str | None) -> str | None:
    """Return why it came out so: what was given, and for a partial score its figures."""
    is_plain = isinstance(value, bool) or (score in {0.0, 1.0} and needed == 1)
    figures = None if is_plain else f"score {_format_score(score)}, needed {_format_score(needed)}"
    parts = [part for part in (given and clean_text(given), figures) if part]
    return "; ".join(parts) or None


def _format_score(score: float) -> str:
    return f"{math.floor(score * 10_000) / 10_000:g}"


def _apply_check(
    check_: Check | _SyncCheck | _AsyncCheck, prefix: str | None, caller: FrameType
) -> bool | Awaitable[bool]:
    """Apply a Check to the running episode as it is so far."""
    __tracebackhide__ = True
    episode = get_active_episode()
    if episode is None or episode.recorder is None:
        raise InputError(
            "check(...): a Check looks at an episode, and none is running here; call it in a test "
            "with the fixture `episode`, or of an evaluation"
        )
    found, place = check_.assertions(episode.recorder.snapshot()), _find_location(caller)
    if inspect.isawaitable(found):
        return _AwaitableCheck(check_, found, prefix, place, episode)
    return _record_assertions(prefix_names(validate_assertions(check_, found), prefix), place)


class _AwaitableCheck(Awaitable[bool]):
    """What a Check will find, once it is awaited."""

    def __init__(
        self,
        check_: object,
        found: Awaitable[Iterable[Assertion]],
        prefix: str | None,
        place: _SourceLocation,
        episode: RunningEpisode,
    ) -> None:
        self._check = check_
        self._found = found
        self._prefix = prefix
        self._place = place
        self._episode = episode
        episode.unawaited.append(self.give_up)

    def give_up(self) -> str:
        """Close what was to be awaited, and say what to do."""
        if inspect.iscoroutine(self._found):
            self._found.close()
        where = f" ({self._place[0]}:{self._place[1]})" if self._place else ""
        return f"check(...) was not awaited{where}; write `await check(...)`"

    def __await__(self) -> Generator[Any, Any, bool]:
        __tracebackhide__ = True
        if self.give_up in self._episode.unawaited:
            self._episode.unawaited.remove(self.give_up)
        found = validate_assertions(self._check, (yield from self._found.__await__()))
        return _record_assertions(prefix_names(found, self._prefix), self._place)


def _record_assertions(found: Sequence[Assertion], place: _SourceLocation) -> bool:
    """Record what was found; raise where a failure is not measured."""
    __tracebackhide__ = True
    episode = get_active_episode()
    for assertion in add_location(found, place):
        if episode is not None:
            episode.keep(assertion)
    failed = [a for a in found if not a.passed and a.severity == "error"]
    if failed and (episode is None or episode.mode == "strict"):
        raise CheckFailed(
            "\n".join(map(_format_failure, failed)), is_recorded=_is_recorded(episode)
        )
    return all(assertion.passed for assertion in found)


def _is_recorded(episode: RunningEpisode | None) -> bool:
    """Say whether an assertion is in the episode once it was told."""
    return episode is not None and not episode.counts_once


def _find_location(caller: FrameType) -> _SourceLocation:
    episode = get_active_episode()
    return None if episode is None else episode.locate(caller)


def _format_failure(assertion: Assertion) -> str:
    return f"{assertion.name}: {assertion.reason}" if assertion.reason else assertion.name


def _find_caller() -> FrameType:
    """Return the frame that called this package."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads whole files
    assert frame is not None  # noqa: S101 - somebody called
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "ci_agent_eval"


def _find_source_text(caller: FrameType) -> str:
    """Return the source text of the value that the call was given, or `check`."""
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
    return _first_argument(b"".join(lines).decode(errors="replace").strip())


def _first_argument(statement: str) -> str:
    """Return the text of what the outermost call of a check in a statement is given."""
    # In a function, for there may be an `await` in it.
    text = f"async def f(): {statement}"
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return "check"
    # The outermost comes first: it is the one whose source was looked up.
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_check(node)]
    named = [k.value for call in calls[:1] for k in call.keywords if k.arg == "value"]
    given = [*(calls[0].args[:1] if calls else ()), *named]
    if not given:
        return "check"
    return shorten_text(ast.get_source_segment(text, given[0]) or "check", _LONGEST)


def _is_check(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else None
    return (call.func.id if isinstance(call.func, ast.Name) else name) == "check"
