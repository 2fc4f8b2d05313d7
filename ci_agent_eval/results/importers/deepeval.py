"""DeepEval: a test run as it is kept in `.deepeval/.latest_run_full.json` or a results folder.

The layout is `TestRun` of its `test_run/test_run.py`. Each test case is an episode, each metric
an assertion: DeepEval's metrics carry their threshold, and say themselves whether they passed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import Complaint, Document, Draft
from ci_agent_eval.results.importers.values import (
    amount,
    count,
    mapping,
    name_of,
    objects,
    seconds_as_ms,
    share,
    shown,
    text,
    tokens,
)

Case = Mapping[str, Any]


class DeepEval:
    """Reads the full test run that DeepEval keeps."""

    tool = "DeepEval"

    def recognizes(self, document: Document) -> bool:
        """Say so by the two lists of test cases."""
        return "testCases" in document and "conversationalTestCases" in document

    def episodes(self, document: Document) -> Iterator[Draft | Complaint]:
        """Yield an episode for each test case, in the run's own order."""
        agent = _agent(document)
        seen: dict[str, int] = defaultdict(int)
        for key in ("testCases", "conversationalTestCases"):
            for case in sorted(objects(document.get(key)), key=_order):
                name = name_of(text(case.get("name")) or case.get("input") or "(no name)")
                seen[name] += 1
                yield {"scenario_id": name, "iteration": seen[name], **agent, **_fields(case)}
        yield from _miscounted(document, sum(seen.values()))


def _order(case: Case) -> tuple[int, str]:
    return count(case.get("order")) or 0, shown(case)


def _agent(document: Document) -> Draft:
    """Return the model among the hyperparameters, where the run logged one."""
    model = text(mapping(document.get("hyperparameters")).get("model"))
    if model is None:
        return {}
    # Runs of several models go together; the node id tells their episodes apart.
    return {"model": model, "agent": model, "nodeid": f"deepeval[{name_of(model)}]"}


def _fields(case: Case) -> Draft:
    metrics = list(objects(case.get("metricsData")))
    return {
        **_ended(case, metrics),
        "trajectory": {"turns": _turns(case)},
        "duration_ms": seconds_as_ms(case.get("completionTime")),
        "judge": _judge(metrics),
    }


def _ended(case: Case, metrics: list[Case]) -> Draft:
    """Judge by `success`; a metric that broke is nobody's failure but the world's."""
    judged = [metric for metric in metrics if metric.get("error") is None]
    broken = [metric for metric in metrics if metric.get("error") is not None]
    fields: Draft = {"assertions": [_assertion(metric) for metric in judged]}
    if broken:
        told = (f"{name_of(m.get('name'))}: {name_of(m.get('error'))}" for m in broken)
        return fields | {"outcome": "error", "reason": "; ".join(told)}
    if not judged or not isinstance(case.get("success"), bool):
        return fields | {"outcome": "error", "reason": "it was not judged: it has no metric"}
    return fields | {"outcome": "passed" if case["success"] else "failed"}


def _assertion(metric: Case) -> Draft:
    threshold = amount(metric.get("threshold"))
    told = text(metric.get("reason"))
    least = None if threshold is None else f"threshold {threshold:g}"
    return {
        "name": text(metric.get("name")) or "(no name)",
        "passed": metric.get("success") is True,
        "score": share(metric.get("score")),
        "reason": " · ".join(part for part in (told, least) if part) or None,
        # A flaky metric never decides, says DeepEval.
        "severity": "warning" if metric.get("flaky") is True else "error",
    }


def _turns(case: Case) -> list[Draft]:
    """Return the conversation; of a single exchange with what DeepEval was told it took."""
    turns = sorted(objects(case.get("turns")), key=_order)
    if turns:
        return [_turn(turn) for turn in turns]
    answered = {
        "role": "assistant",
        "content": shown(case.get("actualOutput")),
        "tool_calls": list(_calls(case)),
        "latency_ms": seconds_as_ms(case.get("completionTime")),
        "tokens": tokens(case.get("inputTokenCount"), case.get("outputTokenCount")),
        "cost_usd": amount(case.get("tokenCost")),
    }
    return [{"role": "user", "content": shown(case.get("input"))}, answered]


def _turn(turn: Case) -> Draft:
    role = "assistant" if turn.get("role") == "assistant" else "user"
    return {"role": role, "content": shown(turn.get("content")), "tool_calls": list(_calls(turn))}


def _calls(holder: Case) -> Iterator[Draft]:
    for call in objects(holder.get("toolsCalled")):
        yield {
            "name": text(call.get("name")) or "(no name)",
            "arguments": call.get("inputParameters"),
            "result": call.get("output"),
        }


def _judge(metrics: list[Case]) -> Draft | None:
    """Return what the metrics took that asked a model."""
    asked = [metric for metric in metrics if text(metric.get("evaluationModel"))]
    if not asked:
        return None
    costs = [amount(metric.get("evaluationCost")) for metric in asked]
    known = [cost for cost in costs if cost is not None]
    return {
        "calls": len(asked),
        "tokens": {
            "input": sum(count(metric.get("inputTokenCount")) or 0 for metric in asked),
            "output": sum(count(metric.get("outputTokenCount")) or 0 for metric in asked),
        },
        "cost_usd": sum(known) if len(known) == len(costs) else None,
    }


def _miscounted(document: Document, found: int) -> Iterator[Complaint]:
    passed, failed = count(document.get("testPassed")), count(document.get("testFailed"))
    if passed is not None and failed is not None and passed + failed > found:
        yield Complaint(
            f"counts {passed + failed} test cases and holds {found}; run DeepEval again",
            "declared_counts_differ",
        )
