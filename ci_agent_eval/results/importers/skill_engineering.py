"""pytest-skill-engineering: its `--aitest-json`, schema version 4.0.

The layout is its `SuiteReport`, `TestReport` and `EvalResult`. Each captured run is an episode;
its test's outcome is the episode's, because a run knows nothing of what is asserted about it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from typing import Any

from ci_agent_eval.results.importers.protocol import Complaint, Document, Draft
from ci_agent_eval.results.importers.values import (
    amount,
    count,
    mapping,
    name_of,
    objects,
    sequence,
    shown,
    text,
    tokens,
)
from ci_agent_eval.results.importers.verdicts import stopped

VERSION = "4.0"

_STOPS = {
    "completed": "completed",
    "tool_budget_exceeded": "tool_call_limit",
    "timeout": "timeout",
    "request_audit_error": "model_error",
    "execution_error": "model_error",
    "cleanup_error": "server_error",
}
_BROKEN = ("timeout", "request_audit_error", "execution_error", "cleanup_error")
"""Reasons to stop that are the world's."""

_RAISED = re.compile(r"\s*(?:(?:setup|teardown): )?\s*((?:\w+\.)*\w*(?:Error|Exception|Timeout))\b")
"""The exception that the plugin's text of a failure starts with."""

Test = Mapping[str, Any]


class SkillEngineering:
    """Reads the evidence of a session."""

    tool = "pytest-skill-engineering (--aitest-json)"

    def recognizes(self, document: Document) -> bool:
        """Say so by what the session keeps of its prices, or by the outcome of a run."""
        first = next(objects(document.get("tests")), {})
        return "tests" in document and (
            "models_without_pricing" in document or "eval_result" in first
        )

    def episodes(self, document: Document) -> Iterator[Draft | Complaint]:
        """Yield an episode for each run, by test and iteration; a test may make several."""
        if document.get("schema_version") != VERSION:
            shown_version = name_of(document.get("schema_version"))
            yield Complaint(f"is of schema version {shown_version!r}; version {VERSION} is read")
            return
        unpriced = set(map(shown, sequence(document.get("models_without_pricing"))))
        tests = sorted(objects(document.get("tests")), key=_order)
        seen: dict[str, int] = defaultdict(int)
        for test in tests:
            name = name_of(test.get("name") or "(no name)")
            seen[name] += 1
            yield {"scenario_id": name, "iteration": seen[name], **_fields(test, unpriced)}
        yield from _miscounted(document, len(tests))


def _order(test: Test) -> tuple[str, int, str]:
    return name_of(test.get("name")), count(test.get("iteration")) or 0, shown(test)


def _fields(test: Test, unpriced: Container[str]) -> Draft:
    result = mapping(test.get("eval_result"))
    nodeid = text(test.get("name"))
    return {
        "nodeid": nodeid,
        "file": nodeid.partition("::")[0] if nodeid and "::" in nodeid else None,
        "agent": text(test.get("eval_name")) or text(test.get("agent_id")),
        "model": text(test.get("model")),
        "duration_ms": amount(test.get("duration_ms")),
        **stopped(_STOPS.get(name_of(result.get("stop_reason")))),
        "assertions": [*_assertions(test), *_assertions(result)],
        **_ended(test, result),
        **_taken(result, unpriced),
    }


def _ended(test: Test, result: Mapping[str, Any]) -> Draft:
    """Tell a failed assertion from a test that broke, as pytest's text of it does."""
    outcome, told = test.get("outcome"), text(test.get("error"))
    if outcome == "passed":
        return {"outcome": "passed"}
    if outcome == "skipped":
        return {"outcome": "skipped", "reason": told}
    raised = _RAISED.match(told or "")
    asserted = raised is None or raised[1] == "AssertionError"
    broke = result.get("stop_reason") in _BROKEN or not asserted or outcome != "failed"
    reason = text(result.get("error")) if result.get("stop_reason") in _BROKEN else None
    return {"outcome": "error" if broke else "failed", "reason": reason or _unindented(told)}


def _unindented(told: str | None) -> str | None:
    return "\n".join(line.strip() for line in told.splitlines()) if told else None


def _assertions(holder: Mapping[str, Any]) -> Iterator[Draft]:
    for found in objects(holder.get("assertions")):
        yield {
            "name": text(found.get("message")) or text(found.get("type")) or "(no name)",
            "passed": found.get("passed") is True,
            "reason": text(found.get("details")),
            # The plugin records them; whether they fail the test is for the test to say.
            "severity": "warning",
        }


def _taken(result: Mapping[str, Any], unpriced: Container[str]) -> Draft:
    """Return the conversation; figures stand at turns only where each turn has its own."""
    turns = [_turn(turn) for turn in objects(result.get("turns"))]
    usages = list(objects(result.get("usage")))
    replies = [turn for turn in turns if turn["role"] == "assistant"]
    if replies and len(usages) == len(replies):
        for turn, usage in zip(replies, usages, strict=True):
            turn |= {"tokens": _tokens(usage), "latency_ms": amount(usage.get("duration_ms"))}
    return {
        "trajectory": {"turns": turns},
        "tokens": _tokens_of_all(usages),
        "cost_usd": _cost(result, usages, unpriced),
    }


def _tokens(usage: Mapping[str, Any]) -> dict[str, int] | None:
    cached = usage.get("cache_read_tokens")
    return tokens(usage.get("input_tokens"), usage.get("output_tokens"), cached)


def _tokens_of_all(usages: list[Mapping[str, Any]]) -> dict[str, int] | None:
    found = [_tokens(usage) for usage in usages]
    known = [usage for usage in found if usage is not None]
    if not known or len(known) < len(found):
        return None
    return {name: sum(usage[name] for usage in known) for name in ("input", "output", "cached")}


def _cost(
    result: Mapping[str, Any], usages: list[Mapping[str, Any]], unpriced: Container[str]
) -> float | None:
    """Return the cost; the plugin writes 0 for what has no price."""
    if not usages or any(shown(usage.get("model")) in unpriced for usage in usages):
        return None
    return amount(result.get("cost_usd"))


def _turn(turn: Mapping[str, Any]) -> Draft:
    role = turn.get("role")
    return {
        "role": role if role in ("user", "assistant", "system", "tool") else "user",
        "content": shown(turn.get("content")),
        "tool_calls": [_call(call) for call in objects(turn.get("tool_calls"))],
    }


def _call(call: Mapping[str, Any]) -> Draft:
    return {
        "id": text(call.get("call_id")),
        "name": text(call.get("name")) or "(no name)",
        "arguments": call.get("arguments"),
        "result": call.get("result"),
        "error": text(call.get("error")),
        "duration_ms": amount(call.get("duration_ms")),
    }


def _miscounted(document: Document, found: int) -> Iterator[Complaint]:
    told = [count(document.get(name)) for name in ("passed", "failed", "skipped")]
    total = sum(number or 0 for number in told)
    if None not in told and total != found:
        yield Complaint(
            f"counts {total} runs and holds {found}; run the suite again",
            "declared_counts_differ",
        )
