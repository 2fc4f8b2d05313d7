"""Loading of scenario files: YAML, JSON, JSON lines or CSV, by suffix."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from ci_agent_eval.authoring.scenarios.located_csv import parse_located_csv
from ci_agent_eval.authoring.scenarios.parts import PartProblem, ReadFile, build_parts
from ci_agent_eval.authoring.scenarios.scenario import Scenario
from ci_agent_eval.authoring.scenarios.validation import LocatedEntry, validate_scenarios
from ci_agent_eval.contract.located_json import parse_located_json, parse_located_json_lines
from ci_agent_eval.contract.located_value import LocatedProblem, LocatedValue
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular

MAX_BYTES = 1_048_576
"""Size limit of a file: a few thousand scenarios. PyYAML reads about 0.2 MB per second."""

MAX_ATTACHED_BYTES = 10_485_760
"""Size limit of a file in a message."""

_MAX_PROBLEMS = 20
"""Problems of one file in an error message."""


def _parse_yaml(text: str) -> LocatedValue | None:
    from ci_agent_eval.contract.located_yaml import parse_located_yaml  # noqa: PLC0415 - an extra

    return parse_located_yaml(text)


PARSERS: Mapping[str, Callable[[str], LocatedValue | None]] = {
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".json": parse_located_json,
    ".jsonl": parse_located_json_lines,
    ".csv": parse_located_csv,
}
"""The parser of each suffix."""


def load_scenarios(path: Path, name: str | None = None) -> tuple[Scenario, ...]:
    """Load the scenarios of a file, which is called `name` in messages.

    Raises InputError, which lists every problem with file and line.
    """
    shown = name or str(path)

    @cache  # a file of many scenarios is read and held once
    def read(file: str) -> bytes:
        found = _find_attached(path, file)
        return _read_file(found, file, MAX_ATTACHED_BYTES, "the scenario file")

    return parse_scenarios(_read_file(path, shown, MAX_BYTES, "the test's file"), shown, read)


def _find_attached(path: Path, file: str) -> Path:
    """Return the path of a file in a message. Raises InputError outside the scenario's folder."""
    folder = path.parent.resolve()
    try:
        found = (folder / file).resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{file!r}: is no path ({error})") from None
    if not found.is_relative_to(folder):
        raise InputError(f"{file}: must be in the folder of the scenario file, or below it")
    return found


def _refuse_files(file: str) -> bytes:
    raise InputError(f"{file}: cannot be read, because the scenarios are in no file")


def parse_scenarios(data: bytes, name: str, read: ReadFile = _refuse_files) -> tuple[Scenario, ...]:
    """Parse the scenarios of a file's bytes; the suffix of `name` selects the format.

    `read` returns the bytes of a file in a message.

    Raises InputError, as `load_scenarios` does.
    """
    parse = PARSERS.get(Path(name).suffix.lower())
    if parse is None:
        known = ", ".join(PARSERS)
        raise InputError(f"{name}: its format is not known by its name; end it in {known}")
    try:
        entries, problems = validate_scenarios(parse(_decode_text(data, name)))
    except LocatedProblem as problem:
        raise InputError(_format_problem(name, problem)) from None
    if problems:
        raise InputError(_format_problems(name, problems))
    return _build_scenarios(entries, name, read)


def _build_scenarios(
    entries: Iterable[LocatedEntry], name: str, read: ReadFile
) -> tuple[Scenario, ...]:
    """Build the scenarios with their steps and checks. Raises InputError with every problem."""
    found: list[Scenario] = []
    problems: list[LocatedProblem] = []
    for entry, line, located in entries:
        try:
            parts = build_parts(entry, read)
        except PartProblem as problem:
            place = located.find(problem.path)
            where = "" if place.column else f"{'.'.join(map(str, problem.path))}: "
            problems.append(LocatedProblem(place.line, f"{where}{problem}", place.column))
        else:
            found.append(Scenario(entry, name, line, parts))
    if problems:
        raise InputError(_format_problems(name, problems))
    return tuple(found)


def _read_file(path: Path, name: str, max_bytes: int, beside: str) -> bytes:
    """Return a file's bytes. Raises InputError; its path is relative to the file `beside`."""
    try:
        with open_regular(path, follow=True) as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise InputError(
            f"{name}: cannot be read ({error.strerror}); write its path relative to {beside}"
        ) from None
    except ValueError as error:
        raise InputError(f"{name!r}: is no path ({error})") from None
    if len(data) > max_bytes:
        raise InputError(f"{name}: is larger than {max_bytes} bytes; make it smaller, or split it")
    return data


def _decode_text(data: bytes, name: str) -> str:
    """Decode UTF-8, with or without its byte order mark. Raises InputError."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{name}: is UTF-16; save it as UTF-8")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        # All three line ends count: CSV of old Macs has carriage returns only.
        line = len((data[: error.start] + b"x").splitlines())
        raise InputError(f"{name}:{line}: is not UTF-8; save it as UTF-8") from None


def _format_problem(name: str, problem: LocatedProblem) -> str:
    column = f"column {problem.column!r}: " if problem.column else ""
    return f"{name}:{problem.line}: {column}{problem.message}"


def _format_problems(name: str, problems: list[LocatedProblem]) -> str:
    lines = [_format_problem(name, problem) for problem in problems[:_MAX_PROBLEMS]]
    more = len(problems) - _MAX_PROBLEMS
    return "\n".join(lines + ([f"{name}: and {more} more problems"] if more > 0 else []))
