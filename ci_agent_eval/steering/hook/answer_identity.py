"""Detection of calls that belong to one answer of the model.

Of two equal calls in one answer the second is no second attempt: the model has not read the
message yet. Agents send one event per call, without the answer's name, so it comes from the event's
time (Copilot CLI) or from the conversation's file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MAX_BYTES = 1 << 20
"""Bytes read from the end of a conversation's file, which can be large."""

_RESULTS = ('"tool_result"', '"function_call_output"', '"functionResponse"')
"""Marks of a line with results of tools, in the files of Claude Code, Codex and Gemini CLI."""


def find_answer_id(event: Mapping[str, Any]) -> str | None:
    """Return a text that all calls of one answer share, and others do not; None if unknown."""
    named = event.get("answer_id")
    if isinstance(named, str):
        return named
    if "toolName" in event:
        # Copilot CLI sends one time for all calls of an answer, in milliseconds.
        return str(event["timestamp"]) if "timestamp" in event else None
    path = event.get("transcript_path")
    lines, is_whole = _read_last_lines(Path(path)) if isinstance(path, str) and path else ([], True)
    ids = [event.get(key) for key in ("tool_call_id", "tool_use_id")]
    return _identify_answer(lines, [each for each in ids if isinstance(each, str)], is_whole)


def _read_last_lines(path: Path) -> tuple[list[str], bool]:
    """Return the last lines, and whether they are the whole file."""
    try:
        with path.open("rb") as file:
            start = max(0, file.seek(0, 2) - _MAX_BYTES)
            file.seek(start)
            return file.read().decode("utf-8", "replace").splitlines(), start == 0
    except OSError:
        return [], True


def _identify_answer(lines: Sequence[str], call_ids: Sequence[str], is_whole: bool) -> str | None:
    """Return the message's own id, else the last line with results before the call.

    None if a line is no record, as in an indented file: its lines are the same for each answer.
    """
    quoted = [json.dumps(each) for each in call_ids]
    at = next((at for at, line in enumerate(lines) if any(q in line for q in quoted)), len(lines))
    if not lines or (call_ids and at == len(lines)):
        return None
    if at < len(lines) and (message_id := _read_message_id(lines[at])):
        return message_id
    results = (line for line in reversed(lines[:at]) if any(mark in line for mark in _RESULTS))
    before = next(results, None)
    if before is None:
        return "after " if is_whole else None
    return f"after {before}" if _read_record(before) is not None else None


def _read_message_id(line: str) -> str | None:
    """Return the id of Claude Code's message, which a file has in several lines."""
    message = (_read_record(line) or {}).get("message")
    found = message.get("id") if isinstance(message, dict) else None
    return found if isinstance(found, str) else None


def _read_record(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None
