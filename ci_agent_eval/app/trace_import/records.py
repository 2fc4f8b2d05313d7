"""Reading of trace files: the records of JSON, JSON lines and CSV, with their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ci_agent_eval.contract.result_mapping import TraceMapping
from ci_agent_eval.errors import InputError
from ci_agent_eval.results.episodes import BOM, MAX_LINE_BYTES, parse_document
from ci_agent_eval.results.importers.mapped import describe_missing_records, find_records
from ci_agent_eval.results.importers.records import parse_json_lines
from ci_agent_eval.results.json_text import MalformedError, ReadProblem
from ci_agent_eval.storage.regular_file import open_regular

_LINES = (".jsonl", ".ndjson")
_TABLE = ".csv"


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """A record of a trace file."""

    file: str
    number: int
    """Its line in JSON lines, else its position in the file, from 1."""
    content: dict[str, Any]
    mapping: TraceMapping | None = None

    @property
    def place(self) -> str:
        """The file and the record, for messages."""
        separator = ":" if self.file.lower().endswith(_LINES) else ": record "
        return f"{self.file}{separator}{self.number}"


@dataclass(slots=True)
class ImportProblems:
    """The problems of the files, each with its place; the rest of the files is imported."""

    messages: list[str] = field(default_factory=list)

    def add(self, place: str, message: str) -> None:
        """Add a problem."""
        self.messages.append(f"{place}: {message}")


def read_records(
    files: Iterable[Path], mappings: Iterable[TraceMapping], problems: ImportProblems
) -> Iterator[TraceRecord]:
    """Yield the records of the files in order. Raises InputError for a file that is not there."""
    known = tuple(mappings)
    for path in dict.fromkeys(files):
        name = path.as_posix()
        mapping = next((one for one in known if PurePosixPath(name).match(one.files)), None)
        yield from _read_file(name, _read_bytes(path), mapping, problems)


def _read_bytes(path: Path) -> bytes:
    try:
        with open_regular(path, follow=True) as file:
            data = file.read(MAX_LINE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name its file") from None
    if len(data) > MAX_LINE_BYTES:
        raise InputError(f"{path}: is larger than 64 MiB; split it")
    return data.removeprefix(BOM)


def _read_file(
    name: str, data: bytes, mapping: TraceMapping | None, problems: ImportProblems
) -> Iterator[TraceRecord]:
    if name.lower().endswith(_LINES) and (mapping is None or mapping.records is None):
        yield from _read_lines(name, data, mapping, problems)
        return
    found: list[ReadProblem] = []
    try:
        content = parse_document(data, name, found)
    except MalformedError as error:
        found.append(ReadProblem(str(error), error.line))
        content = []
    for problem in found:
        problems.add(f"{name}:{problem.line}" if problem.line else name, problem.message)
    yield from _list_records(name, content, mapping, problems)


def _read_lines(
    name: str, data: bytes, mapping: TraceMapping | None, problems: ImportProblems
) -> Iterator[TraceRecord]:
    for number, line in enumerate(data.splitlines(keepends=True), start=1):
        for item in parse_json_lines(line):
            if isinstance(item, ReadProblem):
                problems.add(f"{name}:{number}", item.message)
            else:
                yield TraceRecord(name, number, item, mapping)


def _list_records(
    name: str, content: object, mapping: TraceMapping | None, problems: ImportProblems
) -> Iterator[TraceRecord]:
    if mapping is not None:
        content = find_records(content, mapping)
        if not isinstance(content, list):
            problems.add(name, f"has {describe_missing_records(mapping)}")
            return
    items = content if isinstance(content, list) else [content]
    for number, item in enumerate(items, start=1):
        record = TraceRecord(name, number, item if isinstance(item, dict) else {}, mapping)
        if isinstance(item, dict):
            yield record
        else:
            problems.add(record.place, "it is no JSON object")
