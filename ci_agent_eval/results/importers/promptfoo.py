"""promptfoo: the file of `promptfoo eval -o results.json`, version 3.

https://www.promptfoo.dev/docs/configuration/reference/ (EvaluateResult, EvaluateSummaryV3,
ResultFailureReason). Each result is an episode: the test is its scenario, the provider its agent.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.results.importers.protocol import Complaint, Document, Draft
from ci_agent_eval.results.importers.values import (
    amount,
    count,
    mapping,
    name_of,
    objects,
    share,
    shown,
    text,
    tokens,
)

_VERSION = 3
_ERROR = 2
"""`ResultFailureReason.ERROR`: the provider or an assertion broke."""

Result = Mapping[str, Any]


class Promptfoo:
    """Reads what `promptfoo eval -o results.json` writes."""

    tool = "promptfoo"

    def recognizes(self, document: Document) -> bool:
        """Say so by the summary with its statistics."""
        results = mapping(document.get("results"))
        return "stats" in results and "results" in results

    def episodes(self, document: Document) -> Iterator[Draft | Complaint]:
        """Yield an episode for each result, by test, prompt and scenario."""
        summary = mapping(document.get("results"))
        if summary.get("version") != _VERSION:
            shown_version = name_of(summary.get("version"))
            yield Complaint(f"is of version {shown_version!r}; version {_VERSION} is read")
            return
        results = sorted(objects(summary.get("results")), key=_order)
        yield from _drafts(results)
        yield from _miscounted(mapping(summary.get("stats")), len(results))


def _order(result: Result) -> tuple[int, int, str]:
    """Order by test and prompt: promptfoo writes results as they come in."""
    return count(result.get("testIdx")) or 0, count(result.get("promptIdx")) or 0, shown(result)


def _drafts(results: Sequence[Result]) -> Iterator[Draft]:
    names = _names(results)
    pairs = {(_provider(result), _prompt(result)) for result in results}
    with_prompt = len(pairs) > len({provider for provider, _ in pairs})
    seen: dict[tuple[str, str | None], int] = defaultdict(int)
    for result in results:
        scenario = names[_described(result), _variables(result)]
        agent = _agent(result, with_prompt=with_prompt)
        seen[scenario, agent] += 1
        yield {
            "scenario_id": scenario,
            "agent": agent,
            # Files of several providers go together; this tells their episodes apart.
            "nodeid": f"promptfoo[{name_of(agent)}]",
            "iteration": seen[scenario, agent],
            **_ended(result),
            **_taken(result),
        }


def _names(results: Sequence[Result]) -> dict[tuple[str | None, str], str]:
    """Name each test by its description; by its variables, too, where others share that."""
    variables: dict[str | None, set[str]] = defaultdict(set)
    for result in results:
        variables[_described(result)].add(_variables(result))
    return {
        (described, given): _name(described, given, is_alone=len(found) == 1)
        for described, found in variables.items()
        for given in found
    }


def _name(described: str | None, variables: str, *, is_alone: bool) -> str:
    if described is None:
        return variables or "(no variables)"
    return described if is_alone else f"{described} {variables}"


def _described(result: Result) -> str | None:
    described = text(mapping(result.get("testCase")).get("description"))
    return None if described is None else name_of(described)


def _variables(result: Result) -> str:
    return name_of(result.get("vars") or mapping(result.get("prompt")).get("label"))


def _prompt(result: Result) -> str:
    prompt = mapping(result.get("prompt"))
    return name_of(prompt.get("label") or prompt.get("raw"))


def _provider(result: Result) -> str | None:
    provider = mapping(result.get("provider"))
    return text(provider.get("label")) or text(provider.get("id"))


def _agent(result: Result, *, with_prompt: bool) -> str | None:
    """Return the provider; with the prompt where one provider was given several."""
    name = _provider(result)
    return f"{name or '(no provider)'}, {_prompt(result)}" if with_prompt else name


def _ended(result: Result) -> Draft:
    """Return outcome, reason and assertions; a failed part of a passed test only warns."""
    grading = mapping(result.get("gradingResult"))
    passed = result.get("success") is True
    broke = result.get("failureReason") == _ERROR or (not passed and not grading)
    outcome = "error" if broke else "passed" if passed else "failed"
    return {
        "outcome": outcome,
        "reason": None if passed else text(result.get("error")) or text(grading.get("reason")),
        "assertions": []
        if broke
        else [
            _assertion(part, number, passed=passed)
            for number, part in enumerate(objects(grading.get("componentResults")), start=1)
        ],
        "scores": [
            {"name": name, "value": value}
            for name, given in sorted(mapping(result.get("namedScores")).items())
            if (value := amount(given)) is not None
        ],
    }


def _assertion(part: Mapping[str, Any], number: int, *, passed: bool) -> Draft:
    asked, held = mapping(part.get("assertion")), part.get("pass") is True
    kind, value = text(asked.get("type")), asked.get("value")
    told = f"{kind}: {name_of(value)}" if kind and value not in (None, "") else kind
    return {
        "name": text(asked.get("metric")) or told or f"assertion {number}",
        "passed": held,
        "score": share(part.get("score")),
        "reason": text(part.get("reason")),
        "severity": "warning" if passed and not held else "error",
    }


def _taken(result: Result) -> Draft:
    """Return the exchange with its figures, as far as the provider gave them."""
    response = mapping(result.get("response"))
    latency = amount(result.get("latencyMs"))
    if not response:
        return {"duration_ms": latency}
    usage = mapping(response.get("tokenUsage"))
    used = tokens(usage.get("prompt"), usage.get("completion"))
    calls = list(_calls(response.get("output")))
    asked = {"role": "user", "content": shown(mapping(result.get("prompt")).get("raw"))}
    answered = {
        "role": "assistant",
        "content": "" if calls else shown(response.get("output")),
        "tool_calls": calls,
        "latency_ms": latency,
        "tokens": used,
        "cost_usd": amount(response.get("cost")),
    }
    return {"duration_ms": latency, "trajectory": {"turns": [asked, answered]}}


def _calls(output: object) -> Iterator[Draft]:
    """Yield tool calls in the layout of OpenAI's API, which promptfoo hands through."""
    items = list(objects(output))
    if not items or not all(text(mapping(item.get("function")).get("name")) for item in items):
        return
    for item in items:
        function = mapping(item.get("function"))
        arguments = _parsed(function.get("arguments"))
        yield {"id": text(item.get("id")), "name": function["name"], "arguments": arguments}


def _parsed(arguments: object) -> object:
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments, parse_constant=str)
    except (ValueError, RecursionError):
        return arguments


def _miscounted(stats: Mapping[str, Any], found: int) -> Iterator[Complaint]:
    told = [count(stats.get(name)) for name in ("successes", "failures", "errors")]
    if None not in told and (total := sum(number or 0 for number in told)) != found:
        yield Complaint(
            f"counts {total} results and holds {found}; run promptfoo again",
            "declared_counts_differ",
        )
