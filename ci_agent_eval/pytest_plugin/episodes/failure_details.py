"""What the terminal shows of a failed episode: the conversation's last turn, and the failure."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from ci_agent_eval.contract.episode import Assertion, Episode, describe_violation
from ci_agent_eval.contract.trajectory import ToolCall, Turn
from ci_agent_eval.contract.wording import (
    format_column,
    make_lines_printable,
    replace_varying_parts,
    shorten_text,
    split_place,
    summarize_reason,
)

MAX_TEXT = 2_000
"""Characters of a message that are sent to the terminal's process."""
MAX_CALLS = 4
MAX_ARGUMENTS = 80

FailureDetails = Mapping[str, Any]
"""`user`, `answer`, `calls` (texts), `check`, `reason`, `place`, `columns`, `cause`, `length`."""


def build_failure_details(episode: Episode) -> FailureDetails | None:
    """Return the details of an episode that failed its test, else None.

    It failed, ended in an error, or passed over a hard budget.
    """
    overruns = [describe_violation(found) for found in episode.violations if found.hard]
    is_over = episode.outcome == "passed" and bool(overruns)
    if not is_over and episode.outcome not in {"failed", "error"}:
        return None
    failed = next(iter(episode.failed_assertions), None)
    name, reason, place = "", episode.reason or "", ""
    if failed is not None:
        name, reason, place = failed.name, failed.reason or "", _format_place(failed)
    elif is_over:
        reason = "; ".join(overruns)
    else:
        reason, file, line = split_place(reason)
        place = f"{file}:{line}" if file else ""
    turns = episode.trajectory.turns if episode.trajectory is not None else ()
    answered = [place for place, turn in enumerate(turns) if turn.role == "assistant"]
    exchange = turns[_find_question(turns, answered[-1]) : answered[-1] + 1] if answered else ()
    calls = [call for turn in exchange for call in turn.tool_calls]
    return {
        "user": _cut(next((t.content for t in exchange if t.role == "user"), "")),
        "answer": _cut(exchange[-1].content) if exchange else None,
        "calls": [format_call(call) for call in calls[:MAX_CALLS]],
        "more_calls": max(0, len(calls) - MAX_CALLS),
        "check": name,
        "reason": _cut(summarize_reason(reason)),
        "place": place or _format_place(episode),
        "columns": " · ".join(f"{n} {format_column(v)}" for n, v in episode.columns.items()),
        "cause": replace_varying_parts(name or reason),
        "length": sum(len(turn.content) for turn in turns),
    }


def _format_place(found: Assertion | Episode) -> str:
    return f"{found.file}:{found.line}" if found.file and found.line else found.file or ""


def _find_question(turns: tuple[Turn, ...], answer: int) -> int:
    """Return the position of the user's message that an answer belongs to."""
    asked = [place for place in range(answer) if turns[place].role == "user"]
    return asked[-1] if asked else answer


def format_call(call: ToolCall) -> str:
    """Return a tool call on one line, with its arguments cut."""
    arguments = call.arguments
    if isinstance(arguments, dict):
        shown = ", ".join(f"{name}={_format_json(value)}" for name, value in arguments.items())
    else:
        shown = "" if arguments is None else _format_json(arguments)
    failed = f" failed: {shorten_text(call.error, MAX_ARGUMENTS)}" if call.error else ""
    return f"{call.name}({shorten_text(shown, MAX_ARGUMENTS)}){failed}"


def _format_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}…"


def make_failure_printable(report: pytest.TestReport, *, has_colors: bool) -> None:
    """Replace control characters and workflow commands in a failure's message and traceback.

    pytest prints both as they are, and they may contain what an agent said. `has_colors`: pytest
    colours them.
    """
    convert = partial(make_lines_printable, has_colors=has_colors)
    report.longrepr = _convert_texts(report.longrepr, convert)


def redact_report(report: pytest.TestReport, redact: Callable[[str], str]) -> None:
    """Redact every text of a report that is shown or written."""
    report.longrepr = _convert_texts(report.longrepr, redact)
    report.sections = [(name, redact(text)) for name, text in report.sections]
    report.user_properties = [
        (name, _convert_texts(value, redact)) for name, value in report.user_properties
    ]


def _convert_texts(value: Any, convert: Callable[[str], str]) -> Any:
    """Return a value with its texts converted; pytest's own representations are copied."""
    if isinstance(value, str):
        return convert(value)
    if isinstance(value, list | tuple):
        return type(value)([_convert_texts(item, convert) for item in value])
    # pytest's tracebacks are trees of these objects, which the terminal, xdist and JUnit each
    # read differently, so their structure must stay.
    if not hasattr(value, "toterminal") or not hasattr(value, "__dict__"):
        return value
    found = copy.copy(value)
    for name, item in vars(value).items():
        object.__setattr__(found, name, _convert_texts(item, convert))
    return found
