"""Import logs of OpenAI evals (`oaieval`): its specification, events, and final report.

https://github.com/openai/evals (`LocalRecorder`). Each sample is an episode: matches are
assertions, metrics are scores, sampled answers are turns.
"""

from __future__ import annotations

import math
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
    as_count,
    as_list,
    as_mapping,
    as_name,
    as_number,
    as_objects,
    as_text,
    build_usage,
    format_content,
)

LogEvent = Mapping[str, Any]

_EVENT_KEYS = frozenset({"run_id", "event_id", "sample_id", "type", "data"})


class OpenAIEvalsImporter:
    """Imports the log of one run."""

    tool = "OpenAI evals"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the first record is a run's specification."""
        first = next(iter(get_records(document)), {})
        return "spec" in first and "eval_name" in as_mapping(first["spec"])

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each sample, by its id."""
        first, *records = get_records(document)
        spec = as_mapping(first["spec"])
        events = [record for record in records if record.keys() >= _EVENT_KEYS]
        samples: dict[str, list[LogEvent]] = defaultdict(list)
        for event in sorted(events, key=_event_sort_key):
            samples[as_name(event["sample_id"])].append(event)
        agent = ", ".join(as_name(name) for name in as_list(spec.get("completion_fns"))) or None
        name = as_name(spec.get("eval_name"))
        for sample_id, found in sorted(samples.items()):
            yield {
                "scenario_id": sample_id if sample_id.startswith(name) else f"{name}/{sample_id}",
                "nodeid": f"openai-evals::{name}[{as_name(agent)}]",
                "agent": agent,
                **_build_outcome(found),
                "trajectory": {"turns": [turn for e in found for turn in _iterate_turns(e)]},
            }
        yield from _check_log(spec, records, events)


def _event_sort_key(event: LogEvent) -> tuple[int, str]:
    return as_count(event["event_id"]) or 0, format_content(event)


def _build_outcome(events: Sequence[LogEvent]) -> EpisodeData:
    """Return the assertions and scores; without both, thresholds can judge nothing."""
    data = [(event["type"], as_mapping(event["data"])) for event in events]
    fields: EpisodeData = {
        "assertions": [_build_match(found) for kind, found in data if kind == "match"],
        "scores": [
            build_score(name, value)
            for kind, found in data
            if kind == "metrics"
            for name, value in sorted(found.items())
            if value is None or isinstance(value, bool | float | int)
        ],
    }
    errors = [found for kind, found in data if kind == "error"]
    if errors:
        reason = as_text(errors[0].get("message")) or "it ended in an error"
        fields |= {"outcome": "error", "reason": reason, "assertions": []}
    return fields


def _build_match(found: Mapping[str, Any]) -> EpisodeData:
    passed = found.get("correct") is True
    expected = as_name(found.get("expected"))
    given = as_name(found.get("sampled", found.get("picked")))
    reason = None if passed else f"expected {expected!r}, found {given!r}"
    return {"name": "match", "passed": passed, "reason": reason}


def _iterate_turns(event: LogEvent) -> Iterator[EpisodeData]:
    """Yield the prompt and the answer of a model call."""
    if event["type"] != "sampling":
        return
    data = as_mapping(event["data"])
    messages = list(as_objects(data.get("prompt")))
    last = messages[-1].get("content") if messages else data.get("prompt")
    yield {"role": "user", "content": format_content(last)}
    sampled, usage = data.get("sampled"), as_mapping(data.get("usage"))
    answer = sampled[0] if isinstance(sampled, list) and len(sampled) == 1 else sampled
    yield {
        "role": "assistant",
        "content": format_content(answer),
        "tokens": build_usage(usage.get("prompt_tokens"), usage.get("completion_tokens")),
    }


def _check_log(
    spec: Mapping[str, Any], records: Sequence[LogEvent], events: Sequence[LogEvent]
) -> Iterator[ImportProblem]:
    """Yield the problems of a log that is not one whole run."""
    reports = [record for record in records if "final_report" in record]
    if not reports:
        yield ImportProblem("has no final report: its run did not end; run it again", "interrupted")
    if len(reports) + len(events) < len(records):
        yield ImportProblem("has a line that is no event of a run; write the file again")
    if any(record.get("run_id") != spec.get("run_id") for record in (*events, *reports)):
        yield ImportProblem("has events of several runs; give each run a file")
    if any(_has_other_totals(as_mapping(report["final_report"]), events) for report in reports):
        yield ImportProblem(
            "its final report is of other events than it holds; run it again",
            "declared_counts_differ",
        )
    numbers = {as_number(event["event_id"]) for event in events}
    if numbers != set(range(len(events))):
        yield ImportProblem(
            "its events are not numbered from 0 without gaps: some are missing or repeated; "
            "run it again",
            "declared_counts_differ",
        )


def _has_other_totals(report: Mapping[str, Any], events: Sequence[LogEvent]) -> bool:
    """Return whether the accuracy or the tokens in the report are not those of the events.

    The report is written before the last events, so a file that is cut off has one, too.
    """
    found = [(event["type"], as_mapping(event["data"])) for event in events]
    matches = [data.get("correct") is True for kind, data in found if kind == "match"]
    used = [
        as_count(as_mapping(data.get("usage")).get("prompt_tokens")) or 0
        for kind, data in found
        if kind == "sampling"
    ]
    accuracy, tokens = as_number(report.get("accuracy")), report.get("usage_prompt_tokens")
    is_by_matches = accuracy is not None and not any(kind == "metrics" for kind, _ in found)
    correct = sum(matches) / len(matches) if matches else 0.0
    other_accuracy = is_by_matches and not math.isclose(accuracy or 0.0, correct, abs_tol=1e-9)
    return other_accuracy or (tokens is not None and tokens != sum(used))
