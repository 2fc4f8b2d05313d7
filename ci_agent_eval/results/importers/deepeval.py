"""Import DeepEval test runs from `.deepeval/.latest_run_full.json` or a results folder.

The layout is `TestRun` of its `test_run/test_run.py`. Each test case is an episode, each metric
an assertion: DeepEval's metrics have a threshold and a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.results.importers.values import (
    EpisodeData,
    Importer,
    ImportProblem,
    Record,
    ToolDocument,
    as_name,
    build_exchange,
    build_usage,
    check_count,
    format_content,
    number_repeats,
)

_CASES = ("testCases", "conversationalTestCases")


def _can_import(document: ToolDocument) -> bool:
    return all(key in document for key in _CASES)


def _iterate_episodes(document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
    """Yield an episode for each test case, in the order of the run."""
    run = Record(document)
    cases = [case for key in _CASES for case in sorted(run.records(key), key=_case_sort_key)]
    agent = _build_agent(run)
    yield from number_repeats(
        {
            "scenario_id": as_name(case.text("name") or case.get("input") or "(no name)"),
            **agent,
            **_build_case_fields(case),
        }
        for case in cases
    )
    passed, failed = run.count("testPassed"), run.count("testFailed")
    total = None if passed is None or failed is None else passed + failed
    yield from check_count(total, len(cases), "test cases", "run DeepEval again")


IMPORTER = Importer("DeepEval", "thresholds", _can_import, _iterate_episodes)


def _case_sort_key(case: Record) -> tuple[int, str]:
    return case.count("order") or 0, format_content(case.content)


def _build_agent(run: Record) -> EpisodeData:
    """Return the fields for the model among the hyperparameters, if the run logged one."""
    model = run.text("hyperparameters.model")
    if model is None:
        return {}
    # Runs of several models may be loaded together; the node id separates their episodes.
    return {"model": model, "agent": model, "nodeid": f"deepeval[{as_name(model)}]"}


def _build_case_fields(case: Record) -> EpisodeData:
    metrics = case.records("metricsData")
    return {
        **_build_outcome(case, metrics),
        "trajectory": _build_trajectory(case),
        "duration_ms": case.milliseconds("completionTime"),
        "judge": _build_judge_usage(metrics),
    }


def _build_outcome(case: Record, metrics: Sequence[Record]) -> EpisodeData:
    """Return the outcome by `success`; a broken metric is an infrastructure error."""
    judged = [metric for metric in metrics if metric.get("error") is None]
    broken = [metric for metric in metrics if metric.get("error") is not None]
    fields: EpisodeData = {"assertions": [_build_assertion(metric) for metric in judged]}
    success = case.get("success")
    if broken:
        errors = (f"{metric.name('name')}: {metric.name('error')}" for metric in broken)
        return fields | {"outcome": "error", "reason": "; ".join(errors)}
    if not judged or not isinstance(success, bool):
        return fields | {"outcome": "error", "reason": "it was not judged: it has no metric"}
    return fields | {"outcome": "passed" if success else "failed"}


def _build_assertion(metric: Record) -> EpisodeData:
    threshold, reason = metric.amount("threshold"), metric.text("reason")
    least = None if threshold is None else f"threshold {threshold:g}"
    return {
        "name": metric.text("name") or "(no name)",
        "passed": metric.get("success") is True,
        "score": metric.share("score"),
        "reason": " · ".join(part for part in (reason, least) if part) or None,
        # In DeepEval, a flaky metric does not decide the outcome.
        "severity": "warning" if metric.get("flaky") is True else "error",
    }


def _build_trajectory(case: Record) -> EpisodeData:
    """Return the turns; a single exchange has the figures that were reported to DeepEval."""
    turns = sorted(case.records("turns"), key=_case_sort_key)
    if turns:
        return {"turns": [_build_turn(turn) for turn in turns]}
    return build_exchange(
        case.shown("input"),
        case.shown("actualOutput"),
        tool_calls=_build_calls(case),
        latency_ms=case.milliseconds("completionTime"),
        tokens=build_usage(case.get("inputTokenCount"), case.get("outputTokenCount")),
        cost_usd=case.amount("tokenCost"),
    )


def _build_turn(turn: Record) -> EpisodeData:
    role = "assistant" if turn.get("role") == "assistant" else "user"
    return {"role": role, "content": turn.shown("content"), "tool_calls": _build_calls(turn)}


def _build_calls(holder: Record) -> list[EpisodeData]:
    return [
        {
            "name": call.text("name") or "(no name)",
            "arguments": call.get("inputParameters"),
            "result": call.get("output"),
        }
        for call in holder.records("toolsCalled")
    ]


def _build_judge_usage(metrics: Sequence[Record]) -> EpisodeData | None:
    """Return the usage of the metrics that used a model; None: no metric did."""
    with_model = [metric for metric in metrics if metric.text("evaluationModel")]
    if not with_model:
        return None
    costs = [metric.amount("evaluationCost") for metric in with_model]
    priced = [cost for cost in costs if cost is not None]
    return {
        "calls": len(with_model),
        "tokens": {
            "input": sum(metric.count("inputTokenCount") or 0 for metric in with_model),
            "output": sum(metric.count("outputTokenCount") or 0 for metric in with_model),
        },
        "cost_usd": sum(priced) if len(priced) == len(costs) else None,
    }
