"""`eval-results.json`: what the evaluations of a run came to, for programs that read nothing else.

Keys, their spelling and their order are those of the "Aggregate Report" of the conversation
testing design, and there are no others. Numbers are JSON numbers, written without a fraction
where they have none; shares and scores are rounded to six decimals. The text is ASCII, as every
file of ours: a reader need not know its encoding.

`duration` is in milliseconds, 0 where nobody measured it. A skipped conversation is not in the
report. One that ended in an error, with no failed assertion before it, has not passed and has
an `error`; its assertions up to there are listed, its score is 0 and left out of `averageScore`,
which is 0 where nothing was judged: an infrastructure error says nothing about the agent.
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

from ci_agent_eval.contract.attempts import get_decisive_attempt
from ci_agent_eval.contract.base import Amount, Count, FrozenModel, drop_zero_fraction
from ci_agent_eval.contract.episode import Assertion, Episode

SCORE_DECIMALS = 6
"""Of scores, averages and percentages."""

NO_REASON = "no reason given"

_MARK = '"mode":"evaluation"'
"""What the canonical line of every evaluation holds; few other lines do."""

_AsNumber = PlainSerializer(drop_zero_fraction, return_type=int | float, when_used="json")
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), _AsNumber]
_Percentage = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False), _AsNumber]


class _CamelCaseModel(FrozenModel):
    """Written with the seed's keys; in Python the names are Python's."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class AssertionResult(_CamelCaseModel):
    """What came of one assertion."""

    description: str
    passed: bool
    score: _Share
    reason: str | None = None


class EvaluationResult(_CamelCaseModel):
    """What came of one conversation."""

    name: str
    passed: bool
    score: _Share = Field(description="mean score of its assertions; of an error 0")
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
    """Return the evaluations among the episodes, the one attempt of each that counts, by key.

    Skipped ones are among them; trajectories are not kept.
    """
    short = [_drop_trajectory(episode) for episode in episodes if episode.mode == "evaluation"]
    # The same key twice is a broken input, which still is to give the same bytes in any order.
    ordered = sorted(short, key=lambda episode: (episode.key, episode.model_dump_json()))
    return tuple(
        get_decisive_attempt(list(attempts))
        for _, attempts in groupby(ordered, key=lambda item: item.key[:3])
    )


def build_report_from_lines(lines: Iterable[str]) -> EvaluationReport | None:
    """Fold the canonical lines of episodes; None where none of them is an evaluation."""
    episodes = (Episode.model_validate_json(line) for line in lines if _MARK in line)
    found = select_evaluations(episodes)
    return build_evaluation_report(found) if found else None


def _drop_trajectory(episode: Episode) -> Episode:
    return episode.model_copy(update={"trajectory": None, "metadata": {}})


def name_conversations(episodes: Sequence[Episode]) -> list[str]:
    """Return what each is called, in their order; those of the same name are numbered."""
    sizes = Counter(episode.scenario_id for episode in episodes)
    seen: Counter[str] = Counter()
    names = []
    for episode in episodes:
        name = episode.scenario_id
        seen[name] += 1
        names.append(f"{name} [{seen[name]}]" if sizes[name] > 1 else name)
    return names


def build_evaluation_report(episodes: Iterable[Episode]) -> EvaluationReport:
    """Fold the evaluations among the episodes; the same for any order of them."""
    found = select_evaluations(episodes)
    # Skipped ones have their numbers, too: the table lists them.
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
    """Return the mean, exact before it is rounded to six decimals; None of no scores."""
    return round(math.fsum(scores) / len(scores), SCORE_DECIMALS) if scores else None


def score_episode(episode: Episode) -> float:
    """Return the mean score of the assertions; of none 1 if the conversation passed, else 0.

    A conversation that ended in an error scores 0, whatever it had asserted by then.
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
    """Return why a conversation has no judgement, or failed without any assertion that did."""
    if episode.outcome == "error":
        return episode.reason or NO_REASON
    unexplained = episode.outcome == "failed" and not episode.failed_assertions
    return episode.reason or NO_REASON if unexplained else None


def render_evaluation(report: EvaluationReport) -> str:
    """Return `eval-results.json`: two spaces, ASCII, a newline at the end."""
    data = report.model_dump(mode="json", by_alias=True, exclude_none=True)
    return json.dumps(data, indent=2, ensure_ascii=True) + "\n"


def is_rendered_evaluation(text: str) -> bool:
    """Say whether a file's text is one that this program wrote, to the byte."""
    try:
        return render_evaluation(EvaluationReport.model_validate_json(text)) == text
    except ValueError:  # pydantic's errors are such
        return False
