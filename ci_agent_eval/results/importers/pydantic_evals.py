"""Import pydantic-evals reports (`EvaluationReportAdapter.dump_json`).

Each case is an episode. Booleans of evaluators are assertions, numbers are scores. A task or an
evaluator that raised is an error.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.score_verdicts import build_score
from ci_agent_eval.results.importers.values import (
    as_amount,
    as_mapping,
    as_milliseconds,
    as_name,
    as_objects,
    as_text,
    build_usage,
    format_content,
)

ReportCase = Mapping[str, Any]


class PydanticEvalsImporter:
    """Imports the JSON of an `EvaluationReport`."""

    tool = "pydantic-evals"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has the lists of cases and failures."""
        return isinstance(document.get("cases"), list) and "failures" in document

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each case, finished ones first."""
        data_set = as_text(document.get("dataset_name"))
        agent = as_text(document.get("name"))
        seen: dict[str, int] = defaultdict(int)
        for case, fields in _iterate_cases(document):
            name = _name_case(case)
            seen[name] += 1
            yield {
                "scenario_id": f"{as_name(data_set)}/{name}" if data_set else name,
                "agent": agent,
                # Reports of several experiments may be loaded together; this separates them.
                "nodeid": f"pydantic-evals::{as_name(data_set)}[{as_name(agent)}]",
                "iteration": seen[name],
                **fields,
            }
        yield from _check_report_evaluators(document)


def _iterate_cases(document: ToolDocument) -> Iterator[tuple[ReportCase, EpisodeData]]:
    for case in sorted(as_objects(document.get("cases")), key=_case_sort_key):
        yield case, _build_case_fields(case)
    for failure in sorted(as_objects(document.get("failures")), key=_case_sort_key):
        yield failure, _build_failure_fields(failure)


def _case_sort_key(case: ReportCase) -> tuple[str, str]:
    return as_name(case.get("name")), format_content(case)


def _name_case(case: ReportCase) -> str:
    """Return the case's name, for repeated cases without the suffix of the repeat."""
    name = as_text(case.get("source_case_name")) or as_text(case.get("name"))
    return as_name(name or case.get("inputs") or "(no name)")


def _build_case_fields(case: ReportCase) -> EpisodeData:
    assertions = list(_iterate_assertions(case))
    broken = [
        f"{as_name(failure.get('name'))}: {as_name(failure.get('error_message'))}"
        for failure in as_objects(case.get("evaluator_failures"))
    ]
    fields: EpisodeData = {
        "assertions": assertions,
        "scores": list(_iterate_scores(case)),
        "duration_ms": as_milliseconds(case.get("task_duration")),
        "trajectory": {"turns": [*_iterate_user_turns(case), _build_reply(case)]},
    }
    if broken:
        return fields | {"outcome": "error", "reason": "; ".join(broken)}
    return fields


def _build_failure_fields(failure: ReportCase) -> EpisodeData:
    return {
        "outcome": "error",
        "reason": as_text(failure.get("error_message")),
        "trajectory": {"turns": list(_iterate_user_turns(failure))},
    }


def _iterate_assertions(case: ReportCase) -> Iterator[EpisodeData]:
    for name, found in sorted(as_mapping(case.get("assertions")).items()):
        result = as_mapping(found)
        yield {
            "name": name,
            "passed": result.get("value") is True,
            "reason": as_text(result.get("reason")),
        }


def _iterate_scores(case: ReportCase) -> Iterator[EpisodeData]:
    for name, found in sorted(as_mapping(case.get("scores")).items()):
        result = as_mapping(found)
        yield build_score(name, result.get("value"), as_text(result.get("reason")))


def _iterate_user_turns(case: ReportCase) -> Iterator[EpisodeData]:
    yield {"role": "user", "content": format_content(case.get("inputs"))}


def _build_reply(case: ReportCase) -> EpisodeData:
    """Return the output, with the metrics of instrumented agents."""
    metrics = as_mapping(case.get("metrics"))
    return {
        "role": "assistant",
        "content": format_content(case.get("output")),
        "latency_ms": as_milliseconds(case.get("task_duration")),
        "tokens": build_usage(metrics.get("input_tokens"), metrics.get("output_tokens")),
        "cost_usd": as_amount(metrics.get("cost")),
    }


def _check_report_evaluators(document: ToolDocument) -> Iterator[ImportProblem]:
    for failure in as_objects(document.get("report_evaluator_failures")):
        error = f"{as_name(failure.get('name'))}: {as_name(failure.get('error_message'))}"
        yield ImportProblem(f"has an evaluator of the whole report that broke ({error})")
