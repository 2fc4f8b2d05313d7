"""`eval-results.json`: the results of a run's evaluations, for programs that read only this file.

The keys, their spelling and their order are fixed by the "Aggregate Report" of the conversation
testing design. Numbers are JSON numbers, without a fraction if they are whole; shares and
scores are rounded to six decimals. The text is ASCII, so readers need not know its encoding.

`duration` is in milliseconds, 0 if not measured. Skipped conversations are omitted. A
conversation that ended in an error without a failed assertion has not passed and has an
`error`; its assertions up to then are listed, its score is 0 and excluded from `averageScore`
(0 if no conversation was judged): an infrastructure error says nothing about the agent.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Annotated

from pydantic import ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

from ci_agent_eval.contract.base import Amount, Count, FrozenModel, drop_zero_fraction
from ci_agent_eval.contract.episode import Assertion, Episode, get_decisive_attempt

SCORE_DECIMALS = 6
"""Decimals of scores, averages and percentages."""

NO_REASON = "no reason given"

_MARK = '"mode":"evaluation"'
"""Text in the canonical line of every evaluation, and of few other lines."""

_AsNumber = PlainSerializer(drop_zero_fraction, return_type=int | float, when_used="json")
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _AsNumber]
_Percentage = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), _AsNumber]


class _CamelCaseModel(FrozenModel):
    """A model with camelCase keys in JSON and snake_case fields in Python."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class AssertionResult(_CamelCaseModel):
    """The result of one assertion."""

    description: str
    passed: bool
    score: _Share
    reason: str | None = None


class EvaluationResult(_CamelCaseModel):
    """The result of one conversation."""

    name: str
    passed: bool
    score: _Share = Field(description="mean score of its assertions; 0 for an error")
    assertions: tuple[AssertionResult, ...] = ()
    duration: Amount = Field(description="milliseconds; 0: not measured")
    error: str | None = Field(default=None, description="why it was not judged, or failed")


class EvaluationReport(_CamelCaseModel):
    """`eval-results.json`."""

    total_conversations: Count
    passed_conversations: Count
    pass_rate: _Percentage = Field(description="percentage of the conversations that passed")
    average_score: _Share = Field(description="mean score of the conversations judged")
    conversations: tuple[EvaluationResult, ...] = ()


def select_evaluations(episodes: Iterable[Episode]) -> tuple[Episode, ...]:
    """Return the decisive attempt of each evaluation, sorted by key.

    Skipped evaluations are included; trajectories are dropped.
    """
    short = [_drop_trajectory(episode) for episode in episodes if episode.mode == "evaluation"]
    # A broken input may repeat a key; the output must still not depend on the order.
    ordered = sorted(short, key=lambda episode: (episode.key, episode.model_dump_json()))
    return tuple(
        get_decisive_attempt(list(attempts))
        for _, attempts in groupby(ordered, key=lambda item: item.key[:3])
    )


def build_report_from_lines(lines: Iterable[str]) -> EvaluationReport | None:
    """Summarize the canonical lines of episodes; None if none is an evaluation."""
    episodes = (Episode.model_validate_json(line) for line in lines if _MARK in line)
    found = select_evaluations(episodes)
    return build_evaluation_report(found) if found else None


def _drop_trajectory(episode: Episode) -> Episode:
    return episode.model_copy(update={"trajectory": None, "metadata": {}})


def name_conversations(episodes: Sequence[Episode]) -> list[str]:
    """Return a display name for each episode; equal names are numbered."""
    sizes = Counter(episode.scenario_id for episode in episodes)
    seen: Counter[str] = Counter()
    names = []
    for episode in episodes:
        name = episode.scenario_id
        seen[name] += 1
        names.append(f"{name} [{seen[name]}]" if sizes[name] > 1 else name)
    return names


def build_evaluation_report(episodes: Iterable[Episode]) -> EvaluationReport:
    """Summarize the evaluations among the episodes, in any order."""
    found = select_evaluations(episodes)
    # Number skipped conversations, too: the table lists them.
    named = zip(found, name_conversations(found), strict=True)
    kept = [(episode, name) for episode, name in named if episode.outcome != "skipped"]
    counted = [episode for episode, _ in kept]
    conversations = tuple(_build_result(episode, name) for episode, name in kept)
    passed = sum(1 for conversation in conversations if conversation.passed)
    judged = [episode for episode in counted if episode.outcome != "error"]
    return EvaluationReport(
        total_conversations=len(conversations),
        passed_conversations=passed,
        pass_rate=round(100 * passed / len(conversations), SCORE_DECIMALS)
        if conversations
        else 0.0,
        average_score=compute_mean_score([score_episode(episode) for episode in judged]) or 0.0,
        conversations=conversations,
    )


def compute_mean_score(scores: Sequence[float]) -> float | None:
    """Return the mean, exact before it is rounded to six decimals; None without scores."""
    return round(math.fsum(scores) / len(scores), SCORE_DECIMALS) if scores else None


def score_episode(episode: Episode) -> float:
    """Return the mean score of the assertions; without any, 1 if the conversation passed, else 0.

    A conversation that ended in an error scores 0, regardless of its assertions.
    """
    if episode.outcome == "error":
        return 0.0
    mean = compute_mean_score([_score_assertion(assertion) for assertion in episode.assertions])
    return (1.0 if episode.outcome == "passed" else 0.0) if mean is None else mean


def _score_assertion(assertion: Assertion) -> float:
    return float(assertion.passed) if assertion.score is None else assertion.score


def _build_result(episode: Episode, name: str) -> EvaluationResult:
    return EvaluationResult(
        name=name,
        passed=episode.outcome == "passed",
        score=score_episode(episode),
        assertions=tuple(_build_assertion_result(assertion) for assertion in episode.assertions),
        duration=episode.duration_ms or 0.0,
        error=find_evaluation_error(episode),
    )


def _build_assertion_result(assertion: Assertion) -> AssertionResult:
    return AssertionResult(
        description=assertion.name,
        passed=assertion.passed,
        score=round(_score_assertion(assertion), SCORE_DECIMALS),
        reason=assertion.reason,
    )


def find_evaluation_error(episode: Episode) -> str | None:
    """Return the reason of an error, or of a failure without a failed assertion."""
    if episode.outcome == "error":
        return episode.reason or NO_REASON
    unexplained = episode.outcome == "failed" and not episode.failed_assertions
    return episode.reason or NO_REASON if unexplained else None


def render_evaluation(report: EvaluationReport) -> str:
    """Return `eval-results.json`: indented by two spaces, ASCII, with a final newline."""
    data = report.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(data, indent=2, ensure_ascii=True) + "\n"


def is_rendered_evaluation(text: str) -> bool:
    """Say whether this program wrote the text, byte for byte."""
    try:
        return render_evaluation(EvaluationReport.model_validate_json(text)) == text
    except ValueError:  # includes pydantic's ValidationError
        return False
