"""Import files that a mapping describes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.contract.result_mapping import ResultMapping
from ci_agent_eval.results.episodes import (
    BOM,
    MAX_LINE_BYTES,
    LineFile,
    ParsedEpisode,
    ReadingRules,
    import_episodes,
    parse_document,
)
from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.score_verdicts import build_score
from ci_agent_eval.results.importers.values import (
    as_amount,
    as_name,
    as_number,
    as_text,
    build_usage,
    format_content,
)
from ci_agent_eval.results.json_text import MalformedError, ReadProblem


class MappedImporter:
    """Imports the records of a file; the file itself is the document's `content`."""

    score_rule: ScoreRule = "thresholds"

    def __init__(self, mapping: ResultMapping) -> None:
        self._mapping = mapping
        self.tool = f"the mapping {mapping.files!r}"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has the records."""
        return isinstance(find_records(document.get("content"), self._mapping), list)

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each record, in order."""
        mapping = self._mapping
        records = find_records(document.get("content"), mapping)
        if not isinstance(records, list):
            yield ImportProblem(f"has {describe_missing_records(mapping)}")
            return
        seen: dict[tuple[str, str], int] = defaultdict(int)
        for number, record in enumerate(records, start=1):
            found = MappedRecord(record)
            name = found.get(mapping.id)
            if name in (None, ""):
                yield ImportProblem(f"its record {number} has no id at {mapping.id!r}")
                continue
            agent = found.get_name(mapping.agent)
            seen[as_name(name), agent or ""] += 1
            yield {
                "scenario_id": as_name(name),
                "agent": agent,
                "nodeid": f"mapping[{agent or ''}]",
                "iteration": seen[as_name(name), agent or ""],
                **_build_outcome(found, mapping),
                **_build_conversation(found, mapping),
            }


def find_records(content: object, mapping: ResultMapping) -> object:
    """Return the value in place of the records of a file; it should be a list."""
    return content if mapping.records is None else find_value(content, mapping.records)


def describe_missing_records(mapping: ResultMapping) -> str:
    """Return the rest of the sentence about a file without records: the problem, the advice."""
    place = f"at {mapping.records!r}" if mapping.records else "as its content"
    return f"no list {place}; correct `records` of the mapping"


class MappedRecord:
    """A record whose values are found by paths."""

    def __init__(self, content: object) -> None:
        self._content = content

    def get(self, path: str | None) -> object:
        """Return the value at a path; None if there is no path or no value."""
        return None if path is None else find_value(self._content, path)

    def get_name(self, path: str | None) -> str | None:
        """Return a value as a short text."""
        value = self.get(path)
        return None if value in (None, "") else as_name(value)

    def get_number(self, path: str | None) -> float | None:
        """Return a number, also of a cell of CSV."""
        value = self.get(path)
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return None
            value = int(value) if value.is_integer() else value
        return as_number(value)


def find_value(content: object, path: str) -> object:
    """Return the value at a path; a key that holds the dots itself comes first."""
    if isinstance(content, dict) and path in content:
        return content[path]
    for part in path.split("."):
        if isinstance(content, dict):
            content = content.get(part)
        elif isinstance(content, list) and part.isdecimal() and int(part) < len(content):
            content = content[int(part)]
        else:
            return None
    return content


def _build_outcome(record: MappedRecord, mapping: ResultMapping) -> Mapping[str, Any]:
    """Return the outcome, if the mapping has one, and the scores."""
    fields: dict[str, Any] = {
        "reason": as_text(record.get(mapping.reason)),
        "scores": [
            build_score(name, _get_score(record, path))
            for name, path in sorted(mapping.scores.items())
        ],
    }
    error = record.get(mapping.error)
    if error not in (None, "", False):
        return fields | {"outcome": "error", "reason": as_name(error)}
    if mapping.outcome is None:
        return fields
    value = _write_value(record.get(mapping.outcome))
    if value in mapping.outcomes:
        return fields | {"outcome": mapping.outcomes[value]}
    reason = f"its {mapping.outcome} is {as_name(value)!r}, for which the mapping has no outcome"
    return fields | {"outcome": "error", "reason": reason}


def _get_score(record: MappedRecord, path: str) -> object:
    value = record.get(path)
    return value if isinstance(value, bool) else record.get_number(path)


def _write_value(value: object) -> str:
    """Return a value as in the keys of `outcomes`: `true`, `1`, or the text itself."""
    return value if isinstance(value, str) else format_content(value)


def _build_conversation(record: MappedRecord, mapping: ResultMapping) -> EpisodeData:
    latency = as_amount(record.get_number(mapping.latency_ms))
    asked = {"role": "user", "content": format_content(record.get(mapping.input))}
    answered = {
        "role": "assistant",
        "content": format_content(record.get(mapping.output)),
        "latency_ms": latency,
        "tokens": build_usage(
            record.get_number(mapping.input_tokens), record.get_number(mapping.output_tokens)
        ),
        "cost_usd": as_amount(record.get_number(mapping.cost_usd)),
    }
    return {"duration_ms": latency, "trajectory": {"turns": [asked, answered]}}


def read_mapped_file(
    file: LineFile, name: str, mapping: ResultMapping, rules: ReadingRules
) -> Iterator[ParsedEpisode | JUnitCase | ReadProblem]:
    """Read a file that a mapping describes; its suffix tells JSON lines and CSV from JSON."""
    data = file.read(MAX_LINE_BYTES + 1)
    if len(data) > MAX_LINE_BYTES:
        yield ReadProblem("it is larger than 64 MiB; split it")
        return
    problems: list[ReadProblem] = []
    try:
        content = rules.redact(parse_document(data.removeprefix(BOM), name, problems))
    except MalformedError as error:
        yield ReadProblem(str(error), error.line)
        return
    yield from problems
    yield from import_episodes(MappedImporter(mapping), {"content": content}, rules)
