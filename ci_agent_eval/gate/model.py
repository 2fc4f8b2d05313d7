"""The policy, reasons and verdict of the gate."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from ci_agent_eval.analysis.comparison.findings import (
    ComparisonFindingKind,
    MetricIncrease,
)
from ci_agent_eval.analysis.comparison.model import AllowedIncreases, ScenarioIncrease, SuiteChange
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.contract.episode import Gating
from ci_agent_eval.contract.findings import Finding

VerdictConclusion = Literal["success", "failure"]

ScenarioStatus = Literal["passing", "failing", "errored", "skipped", "incomplete"]
"""`errored` and `skipped`: no iteration of the scenario was judged; `incomplete`: enough judged
iterations passed, but others were skipped or never ran."""

Shortfall = Literal["measurement", "pass_rate", "score"]
"""A threshold of the suite that its evaluations miss."""

ReasonKind = (
    Literal[
        "finding",
        "no_evidence",
        "evidence",
        "unseen",
        "scenario",
        "suite_pass_rate",
        "error_budget",
        "skipped",
        "incomplete",
        "missing_scenario",
        "missing_cases",
        "regated_scenario",
        "renamed_scenario",
        "new_scenario",
        "new_cases",
        "partial",
        "tests",
        "budget",
        "suite_budget",
        "evaluation",
        "quarantine",
        "acknowledged",
    ]
    | ComparisonFindingKind
)


ReasonData: TypeAlias = Finding | MetricIncrease | ScenarioIncrease | SuiteChange
"""Reasons as data. `render/` writes the sentence of each."""


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """The requirements that a run must meet to pass the gate."""

    min_pass_rate: float = 1.0
    """Required share of judged iterations that pass, 0 to 1; a scenario's own rate has priority."""
    suite_min_pass_rate: float | None = None
    """Required share of all judged iterations of the strict required scenarios that have no
    own required rate, 0 to 1. If it is set, none of them fails the gate alone;
    None: each of them does."""
    max_error_rate: float = 0.0
    """Maximum share of required episodes with an infrastructure error, 0 to 1."""
    allow_skipped: bool = False
    """Whether iterations of a required scenario may be skipped or not run."""
    partial: Literal["fail", "warn"] = "warn"
    """Whether a run may be restricted to a part of its suite."""
    eval_min_pass_rate: float | None = None
    """Required share of all evaluation conversations that pass, 0 to 1; None: no threshold."""
    eval_min_score: float | None = None
    """Required average score of the evaluations, 0 to 1; None: no threshold."""
    regressions: Literal["fail", "warn"] = "fail"
    """Whether a regression of a required scenario, or a drop of the suite, fails the gate."""
    increases: AllowedIncreases = AllowedIncreases()  # noqa: RUF009 - frozen
    """Maximum increases of cost and latency over the baseline."""

    @property
    def are_evaluations_limited(self) -> bool:
        """Whether there is a threshold for the evaluations."""
        return self.eval_min_pass_rate is not None or self.eval_min_score is not None


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason to fail the gate, or a warning."""

    kind: ReasonKind
    message: str | ReasonData
    """Data if other code reads it, else a sentence.

    `render.sentences.describe_reason` returns the sentence of both.
    """
    scenario_id: str | None = None
    agent: str | None = None
    note: str = ""
    """Words after the sentence of data: what to do, or that it was acknowledged."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A scenario's status with its required pass rate."""

    scenario_id: str
    gate: Gating
    status: ScenarioStatus
    required_pass_rate: float
    required_passes: int | None = None
    """Required number of passes, regardless of the rate."""
    agent: str | None = None
    suite_rate_applies: bool = False
    """Whether it counts in the suite's required pass rate, and does not fail the gate alone."""

    @property
    def fails_alone(self) -> bool:
        """Whether its pass rate is a reason to fail the gate."""
        return self.gate == "required" and self.status == "failing" and not self.suite_rate_applies


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of the suite; None: no threshold."""

    min_pass_rate: float | None = None
    """Required pass rate of all evaluations together."""
    min_score: float | None = None
    """Required average score of all evaluations together."""
    suite_min_pass_rate: float | None = None
    """Required pass rate of the strict scenarios together, see `GatePolicy`."""

    @property
    def limit_evaluations(self) -> bool:
        """Whether there is any threshold for the evaluations."""
        return self.min_pass_rate is not None or self.min_score is not None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion of the gate, with all reasons to fail and all warnings."""

    conclusion: VerdictConclusion
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    """One for each scenario, in the summary's order."""
    thresholds: Thresholds = Thresholds()
    increases: AllowedIncreases = AllowedIncreases()  # noqa: RUF009 - frozen
    """Maximum relative increases of cost and latency."""
    acknowledged: tuple[WaiverStatus, ...] = ()
    """Acknowledged regressions."""


def compute_exact_share(rate: float, whole: int) -> Fraction:
    """Return `rate` times `whole`, exact in decimals: 0.29 of 100 is 29, not 28.999999999999996."""
    return Fraction(str(rate)) * whole
