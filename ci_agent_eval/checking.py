"""`check(...)`: an assertion that is a value, a share of one, or what a Check finds."""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import sys
from collections.abc import Awaitable, Generator, Sequence
from types import FrameType
from typing import Any, Protocol, SupportsFloat, overload

from ci_agent_eval.checks.protocol import Check
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.current import RunningEpisode, running_episode
from ci_agent_eval.errors import InputError

_LONGEST = 200
"""Characters of source text that describe an assertion."""


class CheckFailed(AssertionError):
    """Raised by `check` where what fails is not measured: in a strict test, or outside of one."""

    def __init__(self, message: str, *, is_recorded: bool) -> None:
        super().__init__(message)
        self.is_recorded = is_recorded
        """The running episode has the assertion already."""


class _Plain(Protocol):
    """A check that answers at once."""

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]: ...


class _Awaited(Protocol):
    """A check whose answer is awaited."""

    def assertions(self, episode: Episode) -> Awaitable[tuple[Assertion, ...]]: ...


@overload
def check(
    value: SupportsFloat,
    description: str | None = None,
    *,
    threshold: float | None = None,
    reason: str | None = None,
) -> bool: ...


@overload
def check(value: _Plain, description: str | None = None) -> bool: ...


@overload
def check(value: _Awaited, description: str | None = None) -> Awaitable[bool]: ...


def check(
    value: SupportsFloat | Check | _Plain | _Awaited,
    description: str | None = None,
    *,
    threshold: float | None = None,
    reason: str | None = None,
) -> bool | Awaitable[bool]:
    """Assert something of the running episode, and say whether it holds.

    `value` is True or False; or a score from 0 to 1, which passes at `threshold` (default 1);
    or a Check, which looks at the episode so far (one that asks a model is awaited:
    `await check(…)`). `description` is by default the source text of the value.

    In an evaluation a failure is recorded and the test goes on. In a strict test it is
    recorded and raises AssertionError; outside of an episode it only raises. Raises InputError
    for a value that is none of these.
    """
    caller = _caller()
    if isinstance(value, Check):
        if threshold is not None or reason is not None:
            raise InputError("check(...): a Check brings its own threshold and reason; leave them out")
        return _checked(value, description, caller)
    name = description or _source(caller)
    score = _score(value, name)
    needed = 1.0 if threshold is None else _score(threshold, name, "threshold")
    assertion = Assertion(
        name=clean_text(name),
        passed=score >= needed,
        score=score,
        reason=_reason(value, score, needed, reason),
    )
    return _told([assertion], caller)


def _score(value: object, name: str, what: str = "value") -> float:
    """Return a score from 0 to 1. Raises InputError for anything else."""
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        raise InputError(f"check {name!r}: the {what} is not awaited; await it first")
    if not isinstance(value, SupportsFloat):
        raise InputError(
            f"check {name!r}: the {what} is a {type(value).__name__}; give True or False, a "
            "score from 0 to 1, or a Check"
        )
    score = float(value)
    if not 0 <= score <= 1:
        raise InputError(f"check {name!r}: the {what} must be from 0 to 1 (got {score:g})")
    return score


def _reason(value: object, score: float, needed: float, given: str | None) -> str | None:
    """Return why it came out so: what was given, and for a partial score its figures."""
    is_plain = isinstance(value, bool) or (score in {0.0, 1.0} and needed == 1)
    figures = None if is_plain else f"score {_figure(score)}, needed {_figure(needed)}"
    parts = [part for part in (given and clean_text(given), figures) if part]
    return "; ".join(parts) or None


def _figure(score: float) -> str:
    return f"{math.floor(score * 10_000) / 10_000:g}"


def _checked(
    check_: Check | _Plain | _Awaited, prefix: str | None, caller: FrameType
) -> bool | Awaitable[bool]:
    """Apply a Check to the running episode as it is so far."""
    episode = running_episode()
    if episode is None or episode.recorder is None:
        raise InputError(
            "check(...): a Check looks at an episode, and none is running here; call it in a test "
            "with the fixture `episode`, or of an evaluation"
        )
    found = check_.assertions(episode.recorder.snapshot())
    if isinstance(found, tuple):
        return _told(_named(found, prefix), caller)
    return _Pending(found, prefix, caller, episode)


class _Pending(Awaitable[bool]):
    """What a Check will find, once it is awaited."""

    def __init__(
        self,
        found: Awaitable[tuple[Assertion, ...]],
        prefix: str | None,
        caller: FrameType,
        episode: RunningEpisode,
    ) -> None:
        self._found = found
        self._prefix = prefix
        self._caller = caller

    def __await__(self) -> Generator[Any, Any, bool]:
        found = yield from self._found.__await__()
        return _told(_named(found, self._prefix), self._caller)


def _named(found: Sequence[Assertion], prefix: str | None) -> list[Assertion]:
    if prefix is None:
        return list(found)
    return [a.model_copy(update={"name": f"{clean_text(prefix)}: {a.name}"}) for a in found]


def _told(found: Sequence[Assertion], caller: FrameType) -> bool:
    """Record what was found; raise where a failure is not measured."""
    episode = running_episode()
    file, line = (episode.locate(caller) if episode else None) or (None, None)
    for assertion in found:
        placed = assertion.model_copy(update={"file": file, "line": line})
        if episode is not None:
            episode.keep(placed if assertion.file is None else assertion)
    failed = [a for a in found if not a.passed and a.severity == "error"]
    if failed and (episode is None or episode.mode == "strict"):
        raise CheckFailed("\n".join(map(_sentence, failed)), is_recorded=episode is not None)
    return all(assertion.passed for assertion in found)


def _sentence(assertion: Assertion) -> str:
    return f"{assertion.name}: {assertion.reason}" if assertion.reason else assertion.name


def _caller() -> FrameType:
    """Return the frame that called this package."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - inspect.stack reads whole files
    assert frame is not None  # noqa: S101 - somebody called
    while frame.f_back is not None and _is_ours(frame):
        frame = frame.f_back
    return frame


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "ci_agent_eval"


def _source(caller: FrameType) -> str:
    """Return the source text of the value that the call was given, or `check`."""
    positions = list(caller.f_code.co_positions())[caller.f_lasti // 2]
    if None in positions:
        return "check"
    start, end, column, end_column = positions
    lines = [line.encode() for line in linecache.getlines(caller.f_code.co_filename)[start - 1 : end]]
    if not lines:
        return "check"
    lines[-1] = lines[-1][:end_column]
    lines[0] = lines[0][column:]
    return _first_argument(b"".join(lines).decode(errors="replace"))


def _first_argument(call: str) -> str:
    try:
        tree = ast.parse(call.strip(), mode="eval").body
    except SyntaxError:
        return "check"
    if isinstance(tree, ast.Await):
        tree = tree.value
    if not isinstance(tree, ast.Call) or not tree.args:
        return "check"
    text = ast.get_source_segment(call.strip(), tree.args[0]) or "check"
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
