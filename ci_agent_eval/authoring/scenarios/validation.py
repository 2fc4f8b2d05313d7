"""Validation of parsed scenario files; every problem has its line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ci_agent_eval.contract.base import describe_unknown_key, find_unknown_key, get_plain_message
from ci_agent_eval.contract.located_value import LocatedProblem, LocatedValue
from ci_agent_eval.contract.scenario import ScenarioEntry

_DOCUMENT = ("scenarios", "defaults")
_MESSAGES = {
    "string_type": "must be a text; put it in quotes",
    "string_too_short": "must not be empty; write a text, or take the key away",
    "string_pattern_mismatch": "must be a printable text of up to 200 characters",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "list_type": "must be a list",
}
"""Messages for pydantic's error types whose default message gives no correction."""

_LONGEST = 60
"""Characters of a wrong value in a message."""


class LocatedEntry(NamedTuple):
    """A scenario and its first line."""

    entry: ScenarioEntry
    line: int
    located: LocatedValue
    """Its keys and those of the defaults."""


def validate_scenarios(
    document: LocatedValue | None,
) -> tuple[list[LocatedEntry], list[LocatedProblem]]:
    """Return the valid scenarios of a file, and the problems of the others.

    Raises FileProblem if the file as a whole is invalid.
    """
    items, defaults = _split_document(document)
    header_line = 1 if document is None else document.line
    entries: list[LocatedEntry] = []
    problems: list[LocatedProblem] = []
    for item in items:
        try:
            entries.append(_build_entry(item, defaults, header_line))
        except LocatedProblem as problem:
            problems.append(problem)
    problems += _find_duplicate_ids(entries)
    # A problem of a CSV column, or of the defaults, is found once for each scenario.
    different = {(one.line, one.column, one.message): one for one in problems}
    return entries, sorted(different.values(), key=lambda problem: problem.line)


def _split_document(
    document: LocatedValue | None,
) -> tuple[tuple[LocatedValue, ...], Mapping[str, LocatedValue]]:
    """Return the scenarios and the defaults of a file: a list, or `scenarios` and `defaults`."""
    if document is None:
        raise LocatedProblem(
            1, "is empty; write a list of scenarios, each with id and fixed_responses"
        )
    defaults: Mapping[str, LocatedValue] = {}
    items = document
    if isinstance(document.value, Mapping):
        for key, item in document.value.items():
            if key not in _DOCUMENT:
                raise LocatedProblem(item.line, describe_unknown_key(key, _DOCUMENT))
        defaults = _get_defaults(document.value.get("defaults"))
        items = document.value.get("scenarios", LocatedValue((), document.line))
    if not isinstance(items.value, tuple):
        raise LocatedProblem(items.line, "must be a list of scenarios, or a table with `scenarios`")
    if not items.value:
        raise LocatedProblem(
            items.line, "holds no scenario; write at least one, or take the file away"
        )
    return items.value, defaults


def _get_defaults(given: LocatedValue | None) -> Mapping[str, LocatedValue]:
    if given is None or given.value is None:
        return {}
    if not isinstance(given.value, Mapping):
        raise LocatedProblem(given.line, "defaults: must be a table (keys with values)")
    if "id" in given.value:
        line = given.value["id"].line
        raise LocatedProblem(line, "defaults: each scenario needs an id of its own")
    return given.value


def _build_entry(
    item: LocatedValue, defaults: Mapping[str, LocatedValue], header_line: int
) -> LocatedEntry:
    if not isinstance(item.value, Mapping):
        raise LocatedProblem(item.line, "a scenario must be a table (keys with values)")
    merged = LocatedValue(_merge_defaults(defaults, item.value), item.line)
    try:
        return LocatedEntry(ScenarioEntry.model_validate(merged.to_plain()), item.line, merged)
    except ValueError as error:
        raise _build_problem(error, merged, header_line) from None


def _merge_defaults(
    defaults: Mapping[str, LocatedValue], own: Mapping[str, LocatedValue]
) -> dict[str, LocatedValue]:
    """Merge the entry's keys over the defaults, one level deep in tables."""
    merged = {**defaults, **own}
    for key, item in own.items():
        default = defaults.get(key)
        if default and isinstance(default.value, Mapping) and isinstance(item.value, Mapping):
            merged[key] = LocatedValue({**default.value, **item.value}, item.line, item.column)
    return merged


def _build_problem(error: ValueError, merged: LocatedValue, header_line: int) -> LocatedProblem:
    """Return the first problem of a validation error, with its location.

    An unknown column of a table is a problem of the header.
    """
    errors: Any = getattr(error, "errors", None)
    if errors is None:
        return LocatedProblem(merged.line, str(error))
    first = errors(include_url=False)[0]
    path = [part for part in first["loc"] if not str(part).startswith(("function-", "constrained"))]
    message = _MESSAGES.get(first["type"]) or get_plain_message(first)
    if first["type"] == "model_type" and path[:1] == ["budgets"] and len(path) > 1:
        message = "must be a number, or a table with `limit`"
    unknown = find_unknown_key(first)
    found = merged.find(path if unknown is None else [*path, unknown])
    if unknown is not None and found.column == ".".join(map(str, [*path, unknown])):
        return LocatedProblem(header_line, message, found.column)
    where = "" if found.column else ".".join(map(str, path))
    shown = f"{where}: {message}" if where else message
    return LocatedProblem(found.line, f"{shown}{_quote_input(first)}", found.column)


def _quote_input(first: Mapping[str, Any]) -> str:
    if first["type"] == "missing" or isinstance(first["input"], dict | list):
        return ""
    given = repr(first["input"])
    return f" (got {given if len(given) <= _LONGEST else given[:_LONGEST] + '…'})"


def _find_duplicate_ids(entries: list[LocatedEntry]) -> Iterator[LocatedProblem]:
    lines: dict[str, int] = {}
    for entry, line, _ in entries:
        first = lines.setdefault(entry.id, line)
        if first != line:
            message = f"id {entry.id!r} is already used in line {first}; give it another one"
            yield LocatedProblem(line, message)
