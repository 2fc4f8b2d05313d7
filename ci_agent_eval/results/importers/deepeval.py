"""Import DeepEval test runs from `.deepeval/.latest_run_full.json` or a results folder.

The layout is `TestRun` of its `test_run/test_run.py`. Each test case is an episode, each metric
an assertion: DeepEval's metrics have a threshold and a verdict.
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
from ci_agent_eval.results.importers.values import (
    as_amount,
    as_count,
    as_mapping,
    as_milliseconds,
    as_name,
    as_objects,
    as_share,
    as_text,
    build_usage,
    format_content,
)

DeepEvalCase = Mapping[str, Any]


class DeepEvalImporter:
    """Imports the full test run that DeepEval writes."""

    tool = "DeepEval"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has both lists of test cases."""
        return "testCases" in document and "conversationalTestCases" in document

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each test case, in the order of the run."""
        agent = _build_agent(document)
        seen: dict[str, int] = defaultdict(int)
        for key in ("testCases", "conversationalTestCases"):
            for case in sorted(as_objects(document.get(key)), key=_case_sort_key):
                name = as_name(as_text(case.get("name")) or case.get("input") or "(no name)")
                seen[name] += 1
                yield {
                    "scenario_id": name,
                    "iteration": seen[name],
                    **agent,
                    **_build_case_fields(case),
                }
        yield from _check_counts(document, sum(seen.values()))


def _case_sort_key(case: DeepEvalCase) -> tuple[int, str]:
    return as_count(case.get("order")) or 0, format_content(case)


def _build_agent(document: ToolDocument) -> EpisodeData:
    """Return the fields for the model among the hyperparameters, if the run logged one."""
    model = as_text(as_mapping(document.get("hyperparameters")).get("model"))
    if model is None:
        return {}
    # Runs of several models may be loaded together; the node id separates their episodes.
    return {"model": model, "agent": model, "nodeid": f"deepeval[{as_name(model)}]"}


def _build_case_fields(case: DeepEvalCase) -> EpisodeData:
    metrics = list(as_objects(case.get("metricsData")))
    return {
        **_build_outcome(case, metrics),
        "trajectory": {"turns": _build_turns(case)},
        "duration_ms": as_milliseconds(case.get("completionTime")),
        "judge": _build_judge_usage(metrics),
    }


def _build_outcome(case: DeepEvalCase, metrics: list[DeepEvalCase]) -> EpisodeData:
    """Return the outcome by `success`; a broken metric is an infrastructure error."""
    judged = [metric for metric in metrics if metric.get("error") is None]
    broken = [metric for metric in metrics if metric.get("error") is not None]
    fields: EpisodeData = {"assertions": [_build_assertion(metric) for metric in judged]}
    if broken:
        errors = (f"{as_name(m.get('name'))}: {as_name(m.get('error'))}" for m in broken)
        return fields | {"outcome": "error", "reason": "; ".join(errors)}
    if not judged or not isinstance(case.get("success"), bool):
        return fields | {"outcome": "error", "reason": "it was not judged: it has no metric"}
    return fields | {"outcome": "passed" if case["success"] else "failed"}


def _build_assertion(metric: DeepEvalCase) -> EpisodeData:
    threshold = as_amount(metric.get("threshold"))
    reason = as_text(metric.get("reason"))
    least = None if threshold is None else f"threshold {threshold:g}"
    return {
        "name": as_text(metric.get("name")) or "(no name)",
        "passed": metric.get("success") is True,
        "score": as_share(metric.get("score")),
        "reason": " · ".join(part for part in (reason, least) if part) or None,
        # In DeepEval, a flaky metric does not decide the outcome.
        "severity": "warning" if metric.get("flaky") is True else "error",
    }


def _build_turns(case: DeepEvalCase) -> list[EpisodeData]:
    """Return the turns; a single exchange has the figures that were reported to DeepEval."""
    turns = sorted(as_objects(case.get("turns")), key=_case_sort_key)
    if turns:
        return [_build_turn(turn) for turn in turns]
    reply = {
        "role": "assistant",
        "content": format_content(case.get("actualOutput")),
        "tool_calls": list(_iterate_calls(case)),
        "latency_ms": as_milliseconds(case.get("completionTime")),
        "tokens": build_usage(case.get("inputTokenCount"), case.get("outputTokenCount")),
        "cost_usd": as_amount(case.get("tokenCost")),
    }
    return [{"role": "user", "content": format_content(case.get("input"))}, reply]


def _build_turn(turn: DeepEvalCase) -> EpisodeData:
    role = "assistant" if turn.get("role") == "assistant" else "user"
    return {
        "role": role,
        "content": format_content(turn.get("content")),
        "tool_calls": list(_iterate_calls(turn)),
    }


def _iterate_calls(holder: DeepEvalCase) -> Iterator[EpisodeData]:
    for call in as_objects(holder.get("toolsCalled")):
        yield {
            "name": as_text(call.get("name")) or "(no name)",
            "arguments": call.get("inputParameters"),
            "result": call.get("output"),
        }


def _build_judge_usage(metrics: list[DeepEvalCase]) -> EpisodeData | None:
    """Return the usage of the metrics that used a model; None: no metric did."""
    with_model = [metric for metric in metrics if as_text(metric.get("evaluationModel"))]
    if not with_model:
        return None
    costs = [as_amount(metric.get("evaluationCost")) for metric in with_model]
    known = [cost for cost in costs if cost is not None]
    return {
        "calls": len(with_model),
        "tokens": {
            "input": sum(as_count(metric.get("inputTokenCount")) or 0 for metric in with_model),
            "output": sum(as_count(metric.get("outputTokenCount")) or 0 for metric in with_model),
        },
        "cost_usd": sum(known) if len(known) == len(costs) else None,
    }


def _check_counts(document: ToolDocument, found: int) -> Iterator[ImportProblem]:
    passed, failed = as_count(document.get("testPassed")), as_count(document.get("testFailed"))
    if passed is not None and failed is not None and passed + failed > found:
        yield ImportProblem(
            f"counts {passed + failed} test cases and holds {found}; run DeepEval again",
            "declared_counts_differ",
        )
