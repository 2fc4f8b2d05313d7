"""JSON, JSON lines and CSV of result files, without secrets, and the problems of such files."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple, get_args

from jiter import from_json

from ci_agent_eval.contract.episode import Gating, Mode
from ci_agent_eval.contract.evidence import EvidencePart
from ci_agent_eval.contract.faults import FaultKind
from ci_agent_eval.contract.findings import FindingKind
from ci_agent_eval.contract.results import SessionState, StopCause
from ci_agent_eval.contract.stops import StopReason
from ci_agent_eval.contract.trajectory import CallSource, Role
from ci_agent_eval.redaction import (
    is_secret_key,
    make_distinct_names,
    redact_value,
    remove_secret_pairs,
)

Redact = Callable[[str], str]
"""Redacts secrets in a text."""

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Maximum bytes of a line, and of a file that is read as a whole."""

_MAX_PROBLEM = 300
_POSITION = re.compile(r" at line (\d+) column (\d+)$")
_DUPLICATE = ("it is not JSON: Detected duplicate key", "it has the duplicate key")


class ReadProblem(NamedTuple):
    """A problem of a file; reading continues after it if possible."""

    message: str
    line: int = 0
    cut: bool = False
    """Whether it is an incomplete last line: its writer was killed."""
    kind: FindingKind = "unreadable_file"


class MalformedError(ValueError):
    """A text that is not JSON or not an episode, with the reason and its line (0: unknown)."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.line = line


def parse_json(text: bytes) -> Any:
    """Parse JSON without duplicate keys.

    Raises MalformedError with the column, and the line where there are several.
    """
    try:
        return from_json(text, catch_duplicate_keys=True)
    except ValueError as error:
        position = _POSITION.search(str(error))
        reason = f"it is not JSON: {_POSITION.sub('', str(error))}".replace(*_DUPLICATE)
        if position is None:
            raise MalformedError(limit_length(reason)) from error
        line, column = int(position[1]), position[2]
        sentence = limit_length(f"{reason} at column {column}")
        raise MalformedError(sentence, line) from error


def parse_json_lines(data: bytes) -> Iterator[dict[str, Any] | ReadProblem]:
    """Yield the object on each line that is not blank, or the problem of the line."""
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        try:
            value = parse_json(line) if line.strip() else None
        except MalformedError as error:
            yield ReadProblem(str(error) if line.endswith(b"\n") else _CUT, number)
            continue
        if isinstance(value, dict):
            yield value
        elif line.strip():
            yield ReadProblem("it is not a JSON object", number)


def parse_csv(data: bytes) -> Iterator[dict[str, Any] | ReadProblem]:
    """Yield each row by its column names, or its problem."""
    try:
        rows = csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), strict=True)
        header = next(rows, [])
        repeated = [name for name, count in Counter(header).items() if count > 1]
        if repeated:
            yield ReadProblem(f"it has two columns {repeated[0]!r}; rename one of them", 1)
            return
        for row in rows:
            if len(row) == len(header):
                yield dict(zip(header, row, strict=True))
            elif row:
                counts = f"it has {len(row)} cells, and the header has {len(header)}"
                yield ReadProblem(counts, rows.line_num)
    except (UnicodeDecodeError, csv.Error) as error:
        yield ReadProblem(f"it is not CSV in UTF-8: {error}")
        return
    if not data.endswith(b"\n"):
        yield ReadProblem(_CUT)


_CUT = "its last line is cut off; write the file again"


def limit_length(text: str) -> str:
    """Cut a long problem at its end."""
    return text if len(text) <= _MAX_PROBLEM else f"{text[:_MAX_PROBLEM]}…"


_CONTRACT_WORDS = frozenset(
    word
    for words in (
        *(Gating, Mode, StopReason, EvidencePart, FaultKind),
        *(SessionState, StopCause, CallSource, Role),
    )
    for word in get_args(words)
)
"""Words of the files themselves, which stay even if a secret variable has such a value."""
_is_secret_key = lru_cache(4096)(is_secret_key)


def redact_json(value: Any, redact: Redact) -> Any:
    """Return a JSON value without secrets in its texts and keys.

    Most values hold none, which one look at all their texts together shows.
    """
    texts: list[str] = []
    keys: set[str] = set()
    _collect_texts(value, texts, keys)
    text = "\n".join([*texts, *keys])
    has_pair = any(remove_secret_pairs(one) != one for one in texts if '"' in one or "'" in one)
    if has_pair or any(map(_is_secret_key, keys)) or redact(text) != text:
        return _redact_parts(value, redact)
    return value


def _collect_texts(value: Any, texts: list[str], keys: set[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, list):
        for item in value:
            _collect_texts(item, texts, keys)
    elif isinstance(value, dict):
        keys.update(value)
        for item in value.values():
            _collect_texts(item, texts, keys)


def _redact_parts(value: Any, redact: Redact) -> Any:
    if isinstance(value, str):
        return value if value in _CONTRACT_WORDS else redact_text(value, redact)
    if isinstance(value, list):
        return [_redact_parts(item, redact) for item in value]
    if isinstance(value, dict):
        names = make_distinct_names(value, redact)
        return {
            names[key]: _redact_parts(redact_value(key, item), redact)
            for key, item in value.items()
        }
    return value


def redact_text(text: str, redact: Redact) -> str:
    """Return a text without secrets, also without those that it names in JSON."""
    return remove_secret_pairs(redact(text))
