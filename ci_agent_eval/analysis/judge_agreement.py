"""Checks that were applied to stored transcripts, and a judge's agreement with people. Pure."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple

from ci_agent_eval.analysis.reliability import compute_wilson_interval
from ci_agent_eval.contract.episode import Assertion


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
class JudgedAssertion:
    """A new assertion about a stored transcript."""

    transcript: TranscriptKey
    assertion: Assertion
    is_judged: bool
    """Whether models decided it."""

    @property
    def key(self) -> LabelKey:
        """Its identity."""
        return LabelKey(self.transcript, self.assertion.name)

    @property
    def score(self) -> float:
        """Its score, 0 to 1."""
        score = self.assertion.score
        return float(self.assertion.passed) if score is None else score


class LabelPair(NamedTuple):
    """A person's label and the judge's verdict about one transcript; True: it passes."""

    label: bool
    verdict: bool


@dataclass(frozen=True, slots=True)
class JudgeAgreement:
    """How often a judge's verdicts agree with human labels."""

    labels: int
    agreed: int
    low: float
    """Lower limit of the share that agrees: Wilson's interval, 95 %."""
    high: float
    pass_labels: int
    judged_pass: int
    """Of the transcripts labelled as passing, those that the judge passes."""
    fail_labels: int
    judged_fail: int
    """Of the transcripts labelled as failing, those that the judge fails."""
    kappa: float | None
    """Cohen's kappa, the agreement beyond chance; None: all labels are the same."""


def measure_agreement(pairs: Sequence[LabelPair]) -> JudgeAgreement:
    """Compare verdicts with labels. Raises ValueError without a pair."""
    if not pairs:
        raise ValueError("an agreement needs at least one label")
    agreed = sum(pair.label == pair.verdict for pair in pairs)
    low, high = compute_wilson_interval(agreed, len(pairs))
    passing = [pair.verdict for pair in pairs if pair.label]
    failing = [not pair.verdict for pair in pairs if not pair.label]
    return JudgeAgreement(
        labels=len(pairs),
        agreed=agreed,
        low=low,
        high=high,
        pass_labels=len(passing),
        judged_pass=sum(passing),
        fail_labels=len(failing),
        judged_fail=sum(failing),
        kappa=_compute_kappa(pairs) if passing and failing else None,
    )


def _compute_kappa(pairs: Sequence[LabelPair]) -> float:
    """Return (agreement - chance) / (1 - chance); chance is the agreement of independent verdicts.

    J. Cohen, Educational and Psychological Measurement 20 (1960), 37-46.
    """
    agreement = fmean(pair.label == pair.verdict for pair in pairs)
    label, verdict = fmean(pair.label for pair in pairs), fmean(pair.verdict for pair in pairs)
    chance = math.fsum((label * verdict, (1 - label) * (1 - verdict)))
    return (agreement - chance) / (1 - chance)


@dataclass(frozen=True, slots=True)
class JudgedCheck:
    """An assertion over all transcripts."""

    name: str
    transcripts: int
    scenarios: int
    is_judged: bool
    """Whether models decided it."""
    passed: int
    score: float
    """Mean over the transcripts, 0 to 1."""
    agreement: JudgeAgreement | None
    """None: it has no labels."""


def summarize_checks(
    judged: Sequence[JudgedAssertion], labels: Mapping[LabelKey, bool]
) -> tuple[JudgedCheck, ...]:
    """Summarize the assertions by name, and compare them with the labels."""
    by_name: defaultdict[str, list[JudgedAssertion]] = defaultdict(list)
    for one in judged:
        by_name[one.assertion.name].append(one)
    return tuple(_summarize_check(name, found, labels) for name, found in sorted(by_name.items()))


def _summarize_check(
    name: str, found: Sequence[JudgedAssertion], labels: Mapping[LabelKey, bool]
) -> JudgedCheck:
    pairs = [LabelPair(labels[one.key], one.assertion.passed) for one in found if one.key in labels]
    return JudgedCheck(
        name=name,
        transcripts=len(found),
        scenarios=len({one.transcript.scenario for one in found}),
        is_judged=any(one.is_judged for one in found),
        passed=sum(one.assertion.passed for one in found),
        score=fmean(one.score for one in found),
        agreement=measure_agreement(pairs) if pairs else None,
    )
