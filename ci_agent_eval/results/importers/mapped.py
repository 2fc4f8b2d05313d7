"""Import files that a mapping describes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ci_agent_eval.contract.result_mapping import ResultMapping
from ci_agent_eval.results.importers.values import (
    EpisodeData,
    Importer,
    ImportProblem,
    Record,
    ToolDocument,
    as_amount,
    as_name,
    as_number,
    build_exchange,
    build_score,
    build_usage,
    format_content,
    number_repeats,
)


def build_mapped_importer(mapping: ResultMapping) -> Importer:
    """Return the importer of a mapping; its document has the file as `content`."""

    def can_import(document: ToolDocument) -> bool:
        return isinstance(_find_records(document, mapping), list)

    def iterate_episodes(document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each record, in order, then the problems."""
        found = _find_records(document, mapping)
        if not isinstance(found, list):
            place = f"at {mapping.records!r}" if mapping.records else "as its content"
            yield ImportProblem(f"has no list {place}; correct `records` of the mapping")
            return
        records = list(map(Record, found))
        yield from number_repeats(
            _build_episode(record, mapping) for record in records if _has_id(record, mapping)
        )
        for number, record in enumerate(records, start=1):
            if not _has_id(record, mapping):
                yield ImportProblem(f"its record {number} has no id at {mapping.id!r}")

    tool = f"the mapping {mapping.files!r}"
    return Importer(tool, "thresholds", can_import, iterate_episodes)


def _find_records(document: ToolDocument, mapping: ResultMapping) -> object:
    """Return the value in place of the records of a file; it should be a list."""
    content = Record(document.get("content"))
    return content.content if mapping.records is None else content.get(mapping.records)


def _has_id(record: Record, mapping: ResultMapping) -> bool:
    return record.get(mapping.id) not in (None, "")


def _build_episode(record: Record, mapping: ResultMapping) -> EpisodeData:
    value = record.get(mapping.agent)
    agent = None if value in (None, "") else as_name(value)
    return {
        "scenario_id": record.name(mapping.id),
        "agent": agent,
        "nodeid": f"mapping[{agent or ''}]",
        **_build_outcome(record, mapping),
        **_build_conversation(record, mapping),
    }


def _get_number(record: Record, path: str | None) -> float | None:
    """Return a number, also of a cell of CSV."""
    value = record.get(path)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
        value = int(value) if value.is_integer() else value
    return as_number(value)


def _build_outcome(record: Record, mapping: ResultMapping) -> EpisodeData:
    """Return the outcome, if the mapping has one, and the scores."""
    fields: EpisodeData = {
        "reason": record.text(mapping.reason),
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
    # As in the keys of `outcomes`: `true`, `1`, or the text itself.
    value = format_content(record.get(mapping.outcome))
    if value in mapping.outcomes:
        return fields | {"outcome": mapping.outcomes[value]}
    reason = f"its {mapping.outcome} is {as_name(value)!r}, for which the mapping has no outcome"
    return fields | {"outcome": "error", "reason": reason}


def _get_score(record: Record, path: str) -> Any:
    value = record.get(path)
    return value if isinstance(value, bool) else _get_number(record, path)


def _build_conversation(record: Record, mapping: ResultMapping) -> EpisodeData:
    latency = as_amount(_get_number(record, mapping.latency_ms))
    trajectory = build_exchange(
        record.shown(mapping.input),
        record.shown(mapping.output),
        latency_ms=latency,
        tokens=build_usage(
            _get_number(record, mapping.input_tokens), _get_number(record, mapping.output_tokens)
        ),
        cost_usd=as_amount(_get_number(record, mapping.cost_usd)),
    )
    return {"duration_ms": latency, "trajectory": trajectory}
