"""Import promptfoo results (`promptfoo eval -o results.json`), version 3.

https://www.promptfoo.dev/docs/configuration/reference/ (EvaluateResult, EvaluateSummaryV3,
ResultFailureReason). Each result is an episode: the test is its scenario, the provider its agent.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence

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
    check_count,
    format_content,
    number_repeats,
)

_VERSION = 3
_ERROR = 2
"""`ResultFailureReason.ERROR`: the provider or an assertion broke."""


def _can_import(document: ToolDocument) -> bool:
    """Return whether the document has a summary with statistics."""
    summary = document.get("results")
    return isinstance(summary, dict) and summary.keys() >= {"stats", "results"}


def _iterate_episodes(document: ToolDocument) -> Iterator[EpisodeData | ImportProblem]:
    """Yield an episode for each result, by test, prompt and scenario."""
    summary = Record(document["results"])
    if summary.get("version") != _VERSION:
        version = summary.name("version")
        yield ImportProblem(f"has version {version!r}; version {_VERSION} is read")
        return
    results = sorted(summary.records("results"), key=_result_sort_key)
    yield from number_repeats(_build_episodes(results))
    counts = [summary.count(f"stats.{name}") for name in ("successes", "failures", "errors")]
    total = None if None in counts else sum(count or 0 for count in counts)
    yield from check_count(total, len(results), "results", "run promptfoo again")


IMPORTER = Importer("promptfoo", "thresholds", _can_import, _iterate_episodes)


def _result_sort_key(result: Record) -> tuple[int, int, str]:
    """Return the test and prompt: promptfoo writes results in order of completion."""
    place = result.count("testIdx") or 0, result.count("promptIdx") or 0
    return (*place, format_content(result.content))


def _build_episodes(results: Sequence[Record]) -> Iterator[EpisodeData]:
    names = _name_tests(results)
    pairs = {(_get_provider(result), _format_prompt(result)) for result in results}
    with_prompt = len(pairs) > len({provider for provider, _ in pairs})
    for result in results:
        agent = _get_provider(result)
        if with_prompt:
            agent = f"{agent or '(no provider)'}, {_format_prompt(result)}"
        yield {
            "scenario_id": names[_get_description(result), _format_variables(result)],
            "agent": agent,
            # Files of several providers may be loaded together; this separates their episodes.
            "nodeid": f"promptfoo[{as_name(agent)}]",
            **_build_outcome(result),
            **_build_conversation(result),
        }


def _name_tests(results: Sequence[Record]) -> dict[tuple[str, str], str]:
    """Name each test by its description, and by its variables if the description is not unique."""
    by_description: dict[str, set[str]] = defaultdict(set)
    for result in results:
        by_description[_get_description(result)].add(_format_variables(result))
    return {
        (described, variables): _name_test(described, variables, is_alone=len(both) == 1)
        for described, both in by_description.items()
        for variables in both
    }


def _name_test(described: str, variables: str, *, is_alone: bool) -> str:
    if not described:
        return variables or "(no variables)"
    return described if is_alone else f"{described} {variables}"


def _get_description(result: Record) -> str:
    return as_name(result.text("testCase.description"))


def _format_variables(result: Record) -> str:
    return as_name(result.get("vars") or result.get("prompt.label"))


def _format_prompt(result: Record) -> str:
    return as_name(result.get("prompt.label") or result.get("prompt.raw"))


def _get_provider(result: Record) -> str | None:
    return result.text("provider.label") or result.text("provider.id")


def _build_outcome(result: Record) -> EpisodeData:
    """Return outcome, reason and assertions; a failed part of a passed test only warns."""
    grading = result.at("gradingResult")
    passed = result.get("success") is True
    broke = result.get("failureReason") == _ERROR or (not passed and not grading.content)
    reason = result.text("error") or grading.text("reason")
    parts = () if broke else enumerate(grading.records("componentResults"), start=1)
    return {
        "outcome": "error" if broke else "passed" if passed else "failed",
        "reason": None if passed else reason,
        "assertions": [_build_assertion(part, number, passed=passed) for number, part in parts],
        "scores": [build_score(name, one.content) for name, one in result.entries("namedScores")],
    }


def _build_assertion(part: Record, number: int, *, passed: bool) -> EpisodeData:
    held, kind, value = (
        part.get("pass") is True,
        part.text("assertion.type"),
        part.get("assertion.value"),
    )
    name = f"{kind}: {as_name(value)}" if kind and value not in (None, "") else kind
    return {
        "name": part.text("assertion.metric") or name or f"assertion {number}",
        "passed": held,
        "score": part.share("score"),
        "reason": part.text("reason"),
        "severity": "warning" if passed and not held else "error",
    }


def _build_conversation(result: Record) -> EpisodeData:
    """Return the exchange, with the figures that the provider reported."""
    response, latency = result.at("response"), result.amount("latencyMs")
    if not response.content:
        return {"duration_ms": latency}
    calls = _build_calls(response)
    trajectory = build_exchange(
        result.shown("prompt.raw"),
        "" if calls else response.shown("output"),
        tool_calls=calls,
        latency_ms=latency,
        tokens=build_usage(
            response.get("tokenUsage.prompt"), response.get("tokenUsage.completion")
        ),
        cost_usd=response.amount("cost"),
    )
    return {"duration_ms": latency, "trajectory": trajectory}


def _build_calls(response: Record) -> list[EpisodeData]:
    """Return tool calls in the layout of OpenAI's API, which promptfoo passes on."""
    calls = [
        {
            "id": item.text("id"),
            "name": item.text("function.name"),
            "arguments": _parse_arguments(item.get("function.arguments")),
        }
        for item in response.records("output")
    ]
    return calls if all(call["name"] for call in calls) else []


def _parse_arguments(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments, parse_constant=str)
    except (ValueError, RecursionError):
        return arguments
