"""The results of judging stored transcripts several times, summarized by assertion."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from ci_agent_eval.analysis.intervals import CONFIDENCE_LEVEL
from ci_agent_eval.analysis.judges.agreement import (
    CorrectedRate,
    JudgeCalibration,
    LabelPair,
    calibrate_judge,
    correct_pass_rate,
)
from ci_agent_eval.analysis.judges.position_bias import PositionBias, measure_position_bias
from ci_agent_eval.analysis.judges.variance import (
    JudgedEpisode,
    ScoreInterval,
    VarianceComponents,
    compute_score_interval,
    estimate_components,
)
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.contract.judge_votes import VotePair, pair_votes


class TranscriptKey(NamedTuple):
    """The identity of a judged transcript."""

    scenario: str
    iteration: int
    nodeid: str = ""


class LabelKey(NamedTuple):
    """The identity of a judged assertion about a transcript."""

    transcript: TranscriptKey
    assertion: str


@dataclass(frozen=True, slots=True)
class RepeatedAssertion:
    """An assertion about one transcript, with its result of each time that it was judged."""

    transcript: TranscriptKey
    name: str
    results: tuple[Assertion, ...]
    is_judged: bool
    """Whether models decided it; without a model it is the same each time, and made once."""

    @property
    def passed(self) -> bool:
        """Whether more than half of the results passed."""
        return 2 * sum(one.passed for one in self.results) > len(self.results)

    @property
    def scores(self) -> tuple[float, ...]:
        """The score of each time."""
        return tuple(score_assertion(one) for one in self.results)

    @property
    def vote_pairs(self) -> tuple[VotePair, ...]:
        """The pairs of votes of pairwise comparisons, of all times."""
        return tuple(pair for one in self.results for pair in pair_votes(one.votes))


def score_assertion(assertion: Assertion) -> float:
    """Return the score of an assertion, 0 to 1."""
    return float(assertion.passed) if assertion.score is None else assertion.score


@dataclass(frozen=True, slots=True)
class GateLimits:
    """One-sided limits of an assertion's figures at the gate's level."""

    score: float
    pass_rate: float


@dataclass(frozen=True, slots=True)
class JudgedCheckSummary:
    """An assertion over all transcripts: its score, the judge's variance, and its calibration."""

    name: str
    transcripts: int
    scenarios: int
    repeats: int
    """Largest number of times that a transcript was judged."""
    is_judged: bool
    """Whether models decided it."""
    score: ScoreInterval
    pass_rate: ScoreInterval
    """Share of verdicts that passed, as the judge sees it."""
    components: VarianceComponents
    position_bias: Mapping[str, PositionBias]
    """By judge; empty without pairwise comparisons."""
    calibration: JudgeCalibration | None
    """None: without labels."""
    corrected: CorrectedRate | None
    """The pass rate that people would see; None: without labels of both kinds."""
    upper: GateLimits
    lower: GateLimits


def summarize_checks(
    repeated: Sequence[RepeatedAssertion],
    calibrations: Mapping[str, JudgeCalibration],
    gate_level: float = CONFIDENCE_LEVEL,
) -> tuple[JudgedCheckSummary, ...]:
    """Summarize the assertions by name; `gate_level` is that of the gate's two-sided intervals."""
    by_name: defaultdict[str, list[RepeatedAssertion]] = defaultdict(list)
    for one in repeated:
        by_name[one.name].append(one)
    return tuple(
        _summarize_check(name, found, calibrations.get(name), gate_level)
        for name, found in sorted(by_name.items())
    )


def _summarize_check(
    name: str,
    found: Sequence[RepeatedAssertion],
    calibration: JudgeCalibration | None,
    gate_level: float,
) -> JudgedCheckSummary:
    scores = [JudgedEpisode(one.transcript.scenario, one.scores) for one in found]
    verdicts = [
        JudgedEpisode(one.transcript.scenario, [float(each.passed) for each in one.results])
        for one in found
    ]
    score, rate = (compute_score_interval(values, gate_level) for values in (scores, verdicts))
    gate_low, gate_high = rate.low, rate.high
    corrected = gate = None
    if calibration is not None:
        passed = sum(one.passed for one in found)
        corrected = correct_pass_rate(passed, len(found), calibration)
        gate = correct_pass_rate(passed, len(found), calibration, gate_level)
    if gate is not None:
        gate_low, gate_high = gate.low, gate.high
    return JudgedCheckSummary(
        name=name,
        transcripts=len(found),
        scenarios=len({one.transcript.scenario for one in found}),
        repeats=max(len(one.results) for one in found),
        is_judged=any(one.is_judged for one in found),
        score=compute_score_interval(scores),
        pass_rate=compute_score_interval(verdicts),
        components=estimate_components(scores, verdicts),
        position_bias=_measure_biases(found),
        calibration=calibration,
        corrected=corrected,
        upper=GateLimits(score.high, gate_high),
        lower=GateLimits(score.low, gate_low),
    )


def _measure_biases(found: Sequence[RepeatedAssertion]) -> Mapping[str, PositionBias]:
    by_judge: defaultdict[str, list[VotePair]] = defaultdict(list)
    for pair in (pair for one in found for pair in one.vote_pairs):
        by_judge[pair[0].judge].append(pair)
    measured = {judge: measure_position_bias(by_judge[judge]) for judge in sorted(by_judge)}
    return {judge: bias for judge, bias in measured.items() if bias is not None}


def calibrate_checks(
    repeated: Sequence[RepeatedAssertion], labels: Mapping[LabelKey, bool]
) -> Mapping[str, JudgeCalibration]:
    """Compare the verdicts with the labels of the same transcripts, by assertion."""
    pairs: defaultdict[str, list[LabelPair]] = defaultdict(list)
    for one in repeated:
        label = labels.get(LabelKey(one.transcript, one.name))
        if label is not None:
            pairs[one.name].append(LabelPair(label, one.passed))
    return {name: calibrate_judge(found) for name, found in pairs.items()}


def combine_results(one: RepeatedAssertion, judge: str) -> Assertion:
    """Return the assertion with the verdict of the majority, the mean score and all votes.

    `judge` is the model of results without votes.
    """
    first = one.results[0]
    if len(one.results) == 1:
        return first
    passing = sum(each.passed for each in one.results)
    decisive = next((each for each in one.results if each.passed == one.passed), first)
    votes = []
    for number, result in enumerate(one.results):
        own = {"passed": result.passed, "score": score_assertion(result), "reason": result.reason}
        listed = [vote.model_dump() for vote in result.votes] or [{"judge": judge, **own}]
        most = max(vote.get("repeat", 1) for vote in listed)
        votes += [{**vote, "repeat": number * most + vote.get("repeat", 1)} for vote in listed]
    reason = f"passed {passing} of {len(one.results)} times; {decisive.reason}"
    return Assertion.model_validate(
        {
            **first.model_dump(),
            "passed": one.passed,
            "score": fmean(one.scores),
            "reason": reason,
            "votes": votes,
        }
    )
