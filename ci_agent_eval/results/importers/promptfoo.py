"""Import promptfoo results (`promptfoo eval -o results.json` or `.jsonl`), version 3.

https://www.promptfoo.dev/docs/configuration/reference/ (EvaluateResult, EvaluateSummaryV3,
ResultFailureReason). Each result is an episode: the test is its scenario, the provider its agent.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
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
    as_count,
    as_mapping,
    as_name,
    as_objects,
    as_share,
    as_text,
    build_usage,
    format_content,
    get_records,
)

_VERSION = 3
_ERROR = 2
"""`ResultFailureReason.ERROR`: the provider or an assertion broke."""

_RESULT_KEYS = frozenset({"promptIdx", "testIdx", "testCase", "success", "gradingResult"})

PromptfooResult = Mapping[str, Any]


class PromptfooImporter:
    """Imports the output of `promptfoo eval -o results.json`."""

    tool = "promptfoo"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the document has a summary with statistics."""
        results = as_mapping(document.get("results"))
        return "stats" in results and "results" in results

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each result, by test, prompt and scenario."""
        summary = as_mapping(document.get("results"))
        if summary.get("version") != _VERSION:
            shown_version = as_name(summary.get("version"))
            yield ImportProblem(f"is of version {shown_version!r}; version {_VERSION} is read")
            return
        results = sorted(as_objects(summary.get("results")), key=_result_sort_key)
        yield from _build_episodes(results)
        yield from _check_counts(as_mapping(summary.get("stats")), len(results))


class PromptfooLinesImporter:
    """Imports the output of `promptfoo eval -o results.jsonl`: a result on each line."""

    tool = "promptfoo (`.jsonl`)"
    score_rule: ScoreRule = "thresholds"

    def can_import(self, document: ToolDocument) -> bool:
        """Return whether the first record is a result."""
        records = get_records(document)
        return bool(records) and records[0].keys() >= _RESULT_KEYS

    def iterate_episodes(self, document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
        """Yield an episode for each result, by test, prompt and scenario."""
        records = get_records(document)
        results = [record for record in records if record.keys() >= _RESULT_KEYS]
        yield from _build_episodes(sorted(results, key=_result_sort_key))
        if len(results) < len(records):
            yield ImportProblem("has a line that is not a result; write the file again")
        yield from _check_grid(results)


def _check_grid(results: Sequence[PromptfooResult]) -> Iterator[ImportProblem]:
    """Yield a problem unless every prompt of the file has every test: no total is in the file."""
    pairs = Counter(_result_sort_key(result)[:2] for result in results)
    tests, prompts = {test for test, _ in pairs}, {prompt for _, prompt in pairs}
    if any(count > 1 for count in pairs.values()):
        yield ImportProblem("has a result twice; remove lines of older runs", "duplicate")
    if len(pairs) < len(tests) * len(prompts) or tests != set(range(len(tests))):
        yield ImportProblem(
            "lacks results of some tests; run promptfoo again, or write .json, which says how many "
            "there are",
            "declared_counts_differ",
        )


def _result_sort_key(result: PromptfooResult) -> tuple[int, int, str]:
    """Return the test and prompt: promptfoo writes results in order of completion."""
    return (
        as_count(result.get("testIdx")) or 0,
        as_count(result.get("promptIdx")) or 0,
        format_content(result),
    )


def _build_episodes(results: Sequence[PromptfooResult]) -> Iterator[EpisodeData]:
    names = _name_tests(results)
    pairs = {(_get_provider(result), _format_prompt(result)) for result in results}
    with_prompt = len(pairs) > len({provider for provider, _ in pairs})
    seen: dict[tuple[str, str | None], int] = defaultdict(int)
    for result in results:
        scenario = names[_get_description(result), _format_variables(result)]
        agent = _name_agent(result, with_prompt=with_prompt)
        seen[scenario, agent] += 1
        yield {
            "scenario_id": scenario,
            "agent": agent,
            # Files of several providers may be loaded together; this separates their episodes.
            "nodeid": f"promptfoo[{as_name(agent)}]",
            "iteration": seen[scenario, agent],
            **_build_outcome(result),
            **_build_conversation(result),
        }


def _name_tests(results: Sequence[PromptfooResult]) -> dict[tuple[str | None, str], str]:
    """Name each test by its description, and by its variables if the description is not unique."""
    found: dict[str | None, set[str]] = defaultdict(set)
    for result in results:
        found[_get_description(result)].add(_format_variables(result))
    return {
        (described, variables): _name_test(described, variables, is_alone=len(all_variables) == 1)
        for described, all_variables in found.items()
        for variables in all_variables
    }


def _name_test(described: str | None, variables: str, *, is_alone: bool) -> str:
    if described is None:
        return variables or "(no variables)"
    return described if is_alone else f"{described} {variables}"


def _get_description(result: PromptfooResult) -> str | None:
    described = as_text(as_mapping(result.get("testCase")).get("description"))
    return None if described is None else as_name(described)


def _format_variables(result: PromptfooResult) -> str:
    return as_name(result.get("vars") or as_mapping(result.get("prompt")).get("label"))


def _format_prompt(result: PromptfooResult) -> str:
    prompt = as_mapping(result.get("prompt"))
    return as_name(prompt.get("label") or prompt.get("raw"))


def _get_provider(result: PromptfooResult) -> str | None:
    provider = as_mapping(result.get("provider"))
    return as_text(provider.get("label")) or as_text(provider.get("id"))


def _name_agent(result: PromptfooResult, *, with_prompt: bool) -> str | None:
    """Return the provider, with the prompt if a provider has several prompts."""
    name = _get_provider(result)
    return f"{name or '(no provider)'}, {_format_prompt(result)}" if with_prompt else name


def _build_outcome(result: PromptfooResult) -> EpisodeData:
    """Return outcome, reason and assertions; a failed part of a passed test only warns."""
    grading = as_mapping(result.get("gradingResult"))
    passed = result.get("success") is True
    broke = result.get("failureReason") == _ERROR or (not passed and not grading)
    outcome = "error" if broke else "passed" if passed else "failed"
    return {
        "outcome": outcome,
        "reason": None
        if passed
        else as_text(result.get("error")) or as_text(grading.get("reason")),
        "assertions": []
        if broke
        else [
            _build_assertion(part, number, passed=passed)
            for number, part in enumerate(as_objects(grading.get("componentResults")), start=1)
        ],
        "scores": [
            build_score(name, value)
            for name, value in sorted(as_mapping(result.get("namedScores")).items())
        ],
    }


def _build_assertion(part: Mapping[str, Any], number: int, *, passed: bool) -> EpisodeData:
    assertion, held = as_mapping(part.get("assertion")), part.get("pass") is True
    kind, value = as_text(assertion.get("type")), assertion.get("value")
    name = f"{kind}: {as_name(value)}" if kind and value not in (None, "") else kind
    return {
        "name": as_text(assertion.get("metric")) or name or f"assertion {number}",
        "passed": held,
        "score": as_share(part.get("score")),
        "reason": as_text(part.get("reason")),
        "severity": "warning" if passed and not held else "error",
    }


def _build_conversation(result: PromptfooResult) -> EpisodeData:
    """Return the exchange, with the figures that the provider reported."""
    response = as_mapping(result.get("response"))
    latency = as_amount(result.get("latencyMs"))
    if not response:
        return {"duration_ms": latency}
    usage = as_mapping(response.get("tokenUsage"))
    used = build_usage(usage.get("prompt"), usage.get("completion"))
    calls = list(_iterate_calls(response.get("output")))
    request = {
        "role": "user",
        "content": format_content(as_mapping(result.get("prompt")).get("raw")),
    }
    reply = {
        "role": "assistant",
        "content": "" if calls else format_content(response.get("output")),
        "tool_calls": calls,
        "latency_ms": latency,
        "tokens": used,
        "cost_usd": as_amount(response.get("cost")),
    }
    return {"duration_ms": latency, "trajectory": {"turns": [request, reply]}}


def _iterate_calls(output: object) -> Iterator[EpisodeData]:
    """Yield tool calls in the layout of OpenAI's API, which promptfoo passes on."""
    items = list(as_objects(output))
    if not items or not all(
        as_text(as_mapping(item.get("function")).get("name")) for item in items
    ):
        return
    for item in items:
        function = as_mapping(item.get("function"))
        arguments = _parse_arguments(function.get("arguments"))
        yield {"id": as_text(item.get("id")), "name": function["name"], "arguments": arguments}


def _parse_arguments(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments, parse_constant=str)
    except (ValueError, RecursionError):
        return arguments


def _check_counts(stats: Mapping[str, Any], found: int) -> Iterator[ImportProblem]:
    counts = [as_count(stats.get(name)) for name in ("successes", "failures", "errors")]
    if None not in counts and (total := sum(number or 0 for number in counts)) != found:
        yield ImportProblem(
            f"counts {total} results and holds {found}; run promptfoo again",
            "declared_counts_differ",
        )
