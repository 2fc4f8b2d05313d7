"""Import pytest-skill-engineering results (`--aitest-json`), schema version 4.0.

The layout is its `SuiteReport`, `TestReport` and `EvalResult`. Each captured run is an episode
with the outcome of its test, because a run does not contain the test's assertions.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import (
    EpisodeData,
    ImportProblem,
    ScoreRule,
    ToolDocument,
)
from ci_agent_eval.results.importers.score_verdicts import build_stop_fields
from ci_agent_eval.results.importers.values import (
    as_amount,
    as_count,
    as_list,
    as_mapping,
    as_name,
    as_objects,
    as_text,
    build_usage,
    format_content,
)

VERSION = "4.0"

_STOP_REASONS = {
    "completed": "completed",
    "tool_budget_exceeded": "tool_call_limit",
    "timeout": "timeout",
    "request_audit_error": "model_error",
    "execution_error": "model_error",
    "cleanup_error": "server_error",
}
_INFRASTRUCTURE_STOPS = ("timeout", "request_audit_error", "execution_error", "cleanup_error")
"""Stop reasons that are infrastructure errors."""

_RAISED = re.compile(r"\s*(?:(?:setup|teardown): )?\s*((?:\w+\.)*\w*(?:Error|Exception|Timeout))\b")
"""The exception at the start of the plugin's failure text."""

ReportedTest = Mapping[str, Any]


class SkillEngineeringImporter:
    """Imports the results of a session."""

    tool = "pytest-skill-engineering (--aitest-json)"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has the session's list of prices, or a run's outcome."""
        first = next(as_objects(document.get("tests")), {})
        return "tests" in document and (
            "models_without_pricing" in document or "eval_result" in first
        )

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each run, by test and iteration; a test may make several."""
        if document.get("schema_version") != VERSION:
            shown_version = as_name(document.get("schema_version"))
            yield ImportProblem(
                f"is of schema version {shown_version!r}; version {VERSION} is read"
            )
            return
        unpriced = set(map(format_content, as_list(document.get("models_without_pricing"))))
        tests = sorted(as_objects(document.get("tests")), key=_test_sort_key)
        seen: dict[str, int] = defaultdict(int)
        for test in tests:
            name = as_name(test.get("name") or "(no name)")
            seen[name] += 1
            yield {
                "scenario_id": name,
                "iteration": seen[name],
                **_build_test_fields(test, unpriced),
            }
        yield from _check_counts(document, len(tests))


def _test_sort_key(test: ReportedTest) -> tuple[str, int, str]:
    return as_name(test.get("name")), as_count(test.get("iteration")) or 0, format_content(test)


def _build_test_fields(test: ReportedTest, unpriced: Container[str]) -> EpisodeData:
    result = as_mapping(test.get("eval_result"))
    nodeid = as_text(test.get("name"))
    return {
        "nodeid": nodeid,
        "file": nodeid.partition("::")[0] if nodeid and "::" in nodeid else None,
        "agent": as_text(test.get("eval_name")) or as_text(test.get("agent_id")),
        "model": as_text(test.get("model")),
        "duration_ms": as_amount(test.get("duration_ms")),
        **build_stop_fields(_STOP_REASONS.get(as_name(result.get("stop_reason")))),
        "assertions": [*_iterate_assertions(test), *_iterate_assertions(result)],
        **_build_outcome(test, result),
        **_build_conversation(result, unpriced),
    }


def _build_outcome(test: ReportedTest, result: Mapping[str, Any]) -> EpisodeData:
    """Return the outcome: failed for an assertion, an error for any other exception."""
    outcome, text = test.get("outcome"), as_text(test.get("error"))
    if outcome == "passed":
        return {"outcome": "passed"}
    if outcome == "skipped":
        return {"outcome": "skipped", "reason": text}
    raised = _RAISED.match(text or "")
    asserted = raised is None or raised[1] == "AssertionError"
    broke = (
        result.get("stop_reason") in _INFRASTRUCTURE_STOPS or not asserted or outcome != "failed"
    )
    reason = (
        as_text(result.get("error")) if result.get("stop_reason") in _INFRASTRUCTURE_STOPS else None
    )
    return {"outcome": "error" if broke else "failed", "reason": reason or _strip_lines(text)}


def _strip_lines(text: str | None) -> str | None:
    return "\n".join(line.strip() for line in text.splitlines()) if text else None


def _iterate_assertions(holder: Mapping[str, Any]) -> Iterator[EpisodeData]:
    for found in as_objects(holder.get("assertions")):
        yield {
            "name": as_text(found.get("message")) or as_text(found.get("type")) or "(no name)",
            "passed": found.get("passed") is True,
            "reason": as_text(found.get("details")),
            # The plugin only records them; the test's outcome shows whether they failed it.
            "severity": "warning",
        }


def _build_conversation(result: Mapping[str, Any], unpriced: Container[str]) -> EpisodeData:
    """Return the conversation, with figures of the turns only if every turn has its own."""
    turns = [_build_turn(turn) for turn in as_objects(result.get("turns"))]
    usages = list(as_objects(result.get("usage")))
    replies = [turn for turn in turns if turn["role"] == "assistant"]
    if replies and len(usages) == len(replies):
        for turn, usage in zip(replies, usages, strict=True):
            turn |= {
                "tokens": _build_usage(usage),
                "latency_ms": as_amount(usage.get("duration_ms")),
            }
    return {
        "trajectory": {"turns": turns},
        "tokens": _sum_usages(usages),
        "cost_usd": _find_cost(result, usages, unpriced),
    }


def _build_usage(usage: Mapping[str, Any]) -> dict[str, int] | None:
    cached = usage.get("cache_read_tokens")
    return build_usage(usage.get("input_tokens"), usage.get("output_tokens"), cached)


def _sum_usages(usages: list[Mapping[str, Any]]) -> dict[str, int] | None:
    found = [_build_usage(usage) for usage in usages]
    known = [usage for usage in found if usage is not None]
    if not known or len(known) < len(found):
        return None
    return {name: sum(usage[name] for usage in known) for name in ("input", "output", "cached")}


def _find_cost(
    result: Mapping[str, Any], usages: list[Mapping[str, Any]], unpriced: Container[str]
) -> float | None:
    """Return the cost; None for models without a price, for which the plugin writes 0."""
    if not usages or any(format_content(usage.get("model")) in unpriced for usage in usages):
        return None
    return as_amount(result.get("cost_usd"))


def _build_turn(turn: Mapping[str, Any]) -> EpisodeData:
    role = turn.get("role")
    return {
        "role": role if role in ("user", "assistant", "system", "tool") else "user",
        "content": format_content(turn.get("content")),
        "tool_calls": [_build_call(call) for call in as_objects(turn.get("tool_calls"))],
    }


def _build_call(call: Mapping[str, Any]) -> EpisodeData:
    return {
        "id": as_text(call.get("call_id")),
        "name": as_text(call.get("name")) or "(no name)",
        "arguments": call.get("arguments"),
        "result": call.get("result"),
        "error": as_text(call.get("error")),
        "duration_ms": as_amount(call.get("duration_ms")),
    }


def _check_counts(document: ToolDocument, found: int) -> Iterator[ImportProblem]:
    counts = [as_count(document.get(name)) for name in ("passed", "failed", "skipped")]
    total = sum(number or 0 for number in counts)
    if None not in counts and total != found:
        yield ImportProblem(
            f"counts {total} runs and holds {found}; run the suite again", "declared_counts_differ"
        )
