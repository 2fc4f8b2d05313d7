"""Import ragas results: `evaluate(...).to_pandas()` as JSON, JSON lines or CSV.

https://docs.ragas.io (EvaluationResult, SingleTurnSample, MultiTurnSample). Each sample is an
episode. Every column that is no field of a sample is a metric; of some metrics lower is better, so
thresholds judge them, also those of 0 and 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.records import get_records
from ci_agent_eval.results.importers.score_verdicts import build_score
from ci_agent_eval.results.importers.values import (
    as_list,
    as_mapping,
    as_name,
    as_number,
    as_objects,
    as_text,
    format_content,
)

_REQUIRED = frozenset({"user_input"})
_FIELDS = _REQUIRED | {
    "multi_responses",
    "persona_name",
    "query_length",
    "query_style",
    "reference",
    "reference_context_ids",
    "reference_contexts",
    "reference_tool_calls",
    "reference_topics",
    "response",
    "retrieved_context_ids",
    "retrieved_contexts",
    "rubrics",
    "synthesizer_name",
}
_INDEX = ""
"""Name of the column that `to_csv` writes for the index."""

_ROLES = {"human": "user", "ai": "assistant", "user": "user", "assistant": "assistant"}


class RagasImporter:
    """Imports the table of an evaluation."""

    tool = "ragas"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the records, or the columns, are samples with other columns beside."""
        records = get_records(document)
        columns = records[0].keys() if records else document.keys()
        is_table = bool(records) or all(isinstance(c, dict) for c in document.values())
        return is_table and columns >= _REQUIRED and len(columns & _FIELDS) > 1

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each sample, in order."""
        records = get_records(document) or list(_iterate_rows(document))
        columns = list(records[0]) if records else []
        metrics = [name for name in columns if name not in _FIELDS and name != _INDEX]
        if any(list(record) != columns for record in records):
            yield ImportProblem("its samples do not have the same columns; write it again")
            return
        texts = [name for name in metrics if not _is_metric(name, records)]
        if texts:
            yield ImportProblem(
                f"its column {texts[0]!r} holds other values than numbers; describe the file by "
                "a mapping"
            )
            return
        seen: dict[str, int] = defaultdict(int)
        for record in records:
            name = as_name(record["user_input"] or "(no input)")
            seen[name] += 1
            yield {
                "scenario_id": name,
                # Other tools name scenarios by their questions, too; this separates them.
                "nodeid": "ragas",
                "iteration": seen[name],
                "scores": [build_score(metric, _parse_score(record[metric])) for metric in metrics],
                "trajectory": {"turns": list(_iterate_turns(record))},
            }


def _iterate_rows(document: ToolDocument) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table by columns, as `to_json` writes it; a missing cell is None."""
    for index in as_mapping(document.get("user_input")):
        yield {name: as_mapping(column).get(index) for name, column in document.items()}


def _is_metric(name: str, records: Sequence[Mapping[str, Any]]) -> bool:
    values = [record.get(name) for record in records]
    return all(value in (None, "") or _parse_score(value) is not None for value in values)


def _parse_score(value: object) -> object:
    """Return a number, also of a cell of CSV; None if it is none."""
    if isinstance(value, str):
        try:
            return as_number(float(value))
        except ValueError:
            return None
    return value if isinstance(value, bool) else as_number(value)


def _iterate_turns(record: Mapping[str, Any]) -> Iterator[EpisodeData]:
    """Yield the question and the answer, or the messages of a conversation."""
    messages = as_list(record["user_input"])
    for message in as_objects(messages):
        role = _ROLES.get(as_text(message.get("type")) or as_text(message.get("role")) or "")
        if role is not None:
            yield {"role": role, "content": format_content(message.get("content"))}
    if not messages:
        yield {"role": "user", "content": format_content(record["user_input"])}
        yield {"role": "assistant", "content": format_content(record.get("response"))}
