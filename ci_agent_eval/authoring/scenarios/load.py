"""Loading of scenario files: YAML, JSON or CSV, by suffix."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping
from pathlib import Path

from ci_agent_eval.authoring.scenarios.located_csv import parse_located_csv
from ci_agent_eval.authoring.scenarios.scenario import Scenario
from ci_agent_eval.authoring.scenarios.validation import validate_scenarios
from ci_agent_eval.contract.located_json import parse_located_json
from ci_agent_eval.contract.located_value import LocatedProblem, LocatedValue
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular

MAX_BYTES = 1_048_576
"""Size limit of a file: a few thousand scenarios. PyYAML reads about 0.2 MB per second."""

_MAX_PROBLEMS = 20
"""Problems of one file in an error message."""


def _parse_yaml(text: str) -> LocatedValue | None:
    from ci_agent_eval.contract.located_yaml import parse_located_yaml  # noqa: PLC0415 - an extra

    return parse_located_yaml(text)


PARSERS: Mapping[str, Callable[[str], LocatedValue | None]] = {
    ".yaml": _parse_yaml,
    ".yml": _parse_yaml,
    ".json": parse_located_json,
    ".csv": parse_located_csv,
}
"""The parser of each suffix."""


def load_scenarios(path: Path, name: str | None = None) -> tuple[Scenario, ...]:
    """Load the scenarios of a file, which is called `name` in messages.

    Raises InputError, which lists every problem with file and line.
    """
    return parse_scenarios(_read_file(path, name or str(path)), name or str(path))


def parse_scenarios(data: bytes, name: str) -> tuple[Scenario, ...]:
    """Parse the scenarios of a file's bytes; the suffix of `name` selects the format.

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
    return tuple(Scenario(located.entry, name, located.line) for located in entries)


def _read_file(path: Path, name: str) -> bytes:
    try:
        with open_regular(path, follow=True) as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{name}: cannot be read ({error.strerror}); write its path relative to the test's file"
        ) from None
    except ValueError as error:
        raise InputError(f"{name!r}: is no path ({error})") from None
    if len(data) > MAX_BYTES:
        raise InputError(f"{name}: is larger than {MAX_BYTES} bytes; split it into several files")
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
