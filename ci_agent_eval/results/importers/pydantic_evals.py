"""Import pydantic-evals reports (`EvaluationReportAdapter.dump_json`).

Each case is an episode. Booleans of evaluators are assertions, numbers are scores. A task or an
evaluator that raised is an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from ci_agent_eval.results.importers.values import (
    EpisodeData,
    Importer,
    ImportProblem,
    Record,
    ToolDocument,
    as_name,
    build_exchange,
    build_score,
    build_usage,
    format_content,
    number_repeats,
)


def _can_import(document: ToolDocument) -> bool:
    return isinstance(document.get("cases"), list) and "failures" in document


def _iterate_episodes(document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
    """Yield an episode for each case, finished ones first."""
    report = Record(document)
    data_set, agent = report.text("dataset_name"), report.text("name")
    yield from number_repeats(
        {
            "scenario_id": f"{as_name(data_set)}/{name}" if data_set else name,
            "agent": agent,
            # Reports of several experiments may be loaded together; this separates them.
            "nodeid": f"pydantic-evals::{as_name(data_set)}[{as_name(agent)}]",
            **fields,
        }
        for name, fields in _iterate_cases(report)
    )
    for failure in report.records("report_evaluator_failures"):
        error = _describe_failure(failure)
        yield ImportProblem(f"has an evaluator of the whole report that broke ({error})")


IMPORTER = Importer("pydantic-evals", "thresholds", _can_import, _iterate_episodes)


def _iterate_cases(report: Record) -> Iterator[tuple[str, EpisodeData]]:
    for case in sorted(report.records("cases"), key=_case_sort_key):
        yield _name_case(case), _build_case_fields(case)
    for failure in sorted(report.records("failures"), key=_case_sort_key):
        user = {"role": "user", "content": failure.shown("inputs")}
        fields = {"reason": failure.text("error_message"), "trajectory": {"turns": [user]}}
        yield _name_case(failure), {"outcome": "error", **fields}


def _case_sort_key(case: Record) -> tuple[str, str]:
    return case.name("name"), format_content(case.content)


def _name_case(case: Record) -> str:
    """Return the case's name, for repeated cases without the suffix of the repeat."""
    name = case.text("source_case_name") or case.text("name")
    return as_name(name or case.get("inputs") or "(no name)")


def _describe_failure(failure: Record) -> str:
    return f"{failure.name('name')}: {failure.name('error_message')}"


def _build_case_fields(case: Record) -> EpisodeData:
    """Return the fields of a finished case, with the metrics of instrumented agents."""
    duration = case.milliseconds("task_duration")
    broken = "; ".join(map(_describe_failure, case.records("evaluator_failures")))
    tokens = build_usage(case.get("metrics.input_tokens"), case.get("metrics.output_tokens"))
    return {
        **({"outcome": "error", "reason": broken} if broken else {}),
        "assertions": [
            {"name": name, "passed": one.get("value") is True, "reason": one.text("reason")}
            for name, one in case.entries("assertions")
        ],
        "scores": [
            build_score(name, one.get("value"), one.text("reason"))
            for name, one in case.entries("scores")
        ],
        "duration_ms": duration,
        "trajectory": build_exchange(
            case.shown("inputs"),
            case.shown("output"),
            latency_ms=duration,
            tokens=tokens,
            cost_usd=case.amount("metrics.cost"),
        ),
    }
