"""The gate on judged scores: it takes the judge's noise and its agreement with people into account.

A score fails only if its upper limit is below the requirement, and the limit includes the judge's
variance; so the requirement of an unchanged suite is missed by chance at the accepted rate, for
all requirements together (Bonferroni). A judge must prove its agreement: there the lower limit
counts, and no labels prove nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.analysis.judges.judged_checks import JudgedCheckSummary
from ci_agent_eval.gate.model import Reason

FALSE_ALARM_RATE = 0.05
"""Accepted chance that a suite that meets all requirements fails one of them."""

ScoreMeasure = Literal["score", "pass_rate"]
JudgeMeasure = Literal["agreement", "kappa"]


@dataclass(frozen=True, slots=True)
class JudgePolicy:
    """Requirements of judged assertions; None: there is none."""

    min_score: float | None = None
    min_pass_rate: float | None = None
    min_agreement: float | None = None
    min_kappa: float | None = None

    @property
    def limits_scores(self) -> bool:
        """Whether a score or pass rate is required."""
        return self.min_score is not None or self.min_pass_rate is not None

    @property
    def has_requirement(self) -> bool:
        """Whether anything is required."""
        agreements = (self.min_agreement, self.min_kappa)
        return self.limits_scores or any(limit is not None for limit in agreements)

    def compute_level(self, checks: int) -> float:
        """Return the level of two-sided intervals whose upper limits hold for all requirements."""
        measures = sum(limit is not None for limit in (self.min_score, self.min_pass_rate))
        return 1 - 2 * FALSE_ALARM_RATE / max(checks * measures, 1)


@dataclass(frozen=True, slots=True)
class LowJudgedScore:
    """A score or pass rate that is below the requirement, beyond chance and the judge's noise."""

    check: str
    measure: ScoreMeasure
    required: float
    high: float
    """Upper limit."""


@dataclass(frozen=True, slots=True)
class UnprovenScore:
    """A score or pass rate whose limits enclose the requirement: inconclusive."""

    check: str
    measure: ScoreMeasure
    required: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class UnprovenJudge:
    """A judge whose agreement with people is not proven."""

    check: str
    measure: JudgeMeasure
    required: float
    low: float | None
    """Lower limit; None: labels are missing."""
    missing: Literal["all", "pass", "fail"] | None = None
    """The labels that the assertion does not have, and that the limit needs; None: none."""


@dataclass(frozen=True, slots=True)
class MissingVerdicts:
    """Episodes without a verdict: their judge failed, or they had no transcript to judge."""

    failed: int
    """Episodes whose judge gave no verdict."""
    unjudged: int
    """Episodes that ended in an error, and were not judged."""


@dataclass(frozen=True, slots=True)
class DoubtfulResults:
    """Stored results that are incomplete."""

    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NothingJudged:
    """There are requirements, and no assertion that a model judged."""


@dataclass(frozen=True, slots=True)
class ReportReason:
    """A reason for which `agent-eval report` fails the judged results."""

    reason: Reason
    failed_checks: tuple[str, ...] = ()
    """Names of the assertions that fail in a scenario below its required pass rate."""


JudgeReason = (
    LowJudgedScore
    | UnprovenJudge
    | MissingVerdicts
    | DoubtfulResults
    | NothingJudged
    | ReportReason
)


@dataclass(frozen=True, slots=True)
class JudgeGate:
    """The decision of the gate: it passes without a reason against it."""

    reasons: tuple[JudgeReason, ...]
    warnings: tuple[UnprovenScore, ...]

    @property
    def passed(self) -> bool:
        """Whether there is no reason against it."""
        return not self.reasons


def decide_judge_gate(
    checks: Sequence[JudgedCheckSummary],
    policy: JudgePolicy,
    missing: MissingVerdicts,
    problems: Sequence[str] = (),
    reported: Sequence[ReportReason] = (),
) -> JudgeGate:
    """Decide the gate on the checks that models judged, and on the reasons of the report's gate."""
    reasons: list[JudgeReason] = [DoubtfulResults(tuple(problems))] if problems else []
    reasons += [missing] if missing.failed or missing.unjudged else []
    reasons += reported
    if policy.has_requirement and not any(check.is_judged for check in checks):
        reasons.append(NothingJudged())
    warnings: list[UnprovenScore] = []
    for check in checks:
        if check.is_judged:
            for found in _judge_scores(check, policy):
                (warnings if isinstance(found, UnprovenScore) else reasons).append(found)  # type: ignore[arg-type]
            reasons += _judge_agreement(check, policy)
    return JudgeGate(tuple(reasons), tuple(warnings))


def _judge_scores(
    check: JudgedCheckSummary, policy: JudgePolicy
) -> list[LowJudgedScore | UnprovenScore]:
    found: list[LowJudgedScore | UnprovenScore] = []
    limits: dict[ScoreMeasure, float | None] = {
        "score": policy.min_score,
        "pass_rate": policy.min_pass_rate,
    }
    for measure, required in limits.items():
        low, high = getattr(check.lower, measure), getattr(check.upper, measure)
        if required is not None and high < required:
            found.append(LowJudgedScore(check.name, measure, required, high))
        elif required is not None and low < required:
            found.append(UnprovenScore(check.name, measure, required, low, high))
    return found


def _judge_agreement(check: JudgedCheckSummary, policy: JudgePolicy) -> list[UnprovenJudge]:
    calibration = check.calibration
    kappa = None if calibration is None else calibration.kappa
    lows: dict[JudgeMeasure, tuple[float | None, float | None]] = {
        "agreement": (
            policy.min_agreement,
            None if calibration is None else calibration.agreement.low,
        ),
        "kappa": (policy.min_kappa, None if kappa is None else kappa.low),
    }
    missing: Literal["all", "pass", "fail"] | None = None
    if calibration is None:
        missing = "all"
    elif kappa is None:
        missing = "pass" if calibration.passing is None else "fail"
    return [
        UnprovenJudge(check.name, measure, required, low, missing if low is None else None)
        for measure, (required, low) in lows.items()
        if required is not None and (low is None or low < required)
    ]
