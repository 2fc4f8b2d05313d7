"""What the gate goes by, and what it decides: a policy, reasons, a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, TypeAlias

from ci_agent_eval.analysis.comparison.findings import (
    AllowedIncreases,
    ComparisonFindingKind,
    MetricIncrease,
)
from ci_agent_eval.analysis.waivers import WaiverStatus
from ci_agent_eval.contract.episode import Gating
from ci_agent_eval.contract.findings import Finding

Conclusion = Literal["success", "failure"]

Status = Literal["passing", "failing", "errored", "skipped", "incomplete"]
"""`errored` and `skipped`: no iteration of the scenario was judged; `incomplete`: those that were
judged suffice, and others were skipped or never ran."""

Shortfall = Literal["measurement", "pass_rate", "score"]
"""What evaluations fall short of, where the suite has a threshold for them."""

ReasonKind = (
    Literal[
        "finding",
        "no_evidence",
        "evidence",
        "scenario",
        "error_budget",
        "skipped",
        "incomplete",
        "missing_scenario",
        "regated_scenario",
        "renamed_scenario",
        "new_scenario",
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


ReasonData: TypeAlias = Finding | MetricIncrease
"""Reasons that other code looks into. `render/` makes a sentence of each."""


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What a run must show for the gate to open."""

    min_pass_rate: float = 1.0
    """Required share of judged iterations that pass, 0 to 1; a scenario's own rate wins."""
    max_error_rate: float = 0.0
    """Share of the required episodes that ran which may end in an error, 0 to 1."""
    allow_skipped: bool = False
    """Whether iterations of a required scenario may be skipped, or never run."""
    partial: Literal["fail", "warn"] = "warn"
    """Whether a run may be restricted to a part of its suite."""
    eval_min_pass_rate: float | None = None
    """Required share of all evaluation conversations that pass, 0 to 1; None: no threshold."""
    eval_min_score: float | None = None
    """Required average score of the evaluations, 0 to 1; None: no threshold."""
    regressions: Literal["fail", "warn"] = "fail"
    """Whether a required scenario may pass less often than in the baseline, or perhaps so."""
    max_cost_increase: float | None = None
    """Share by which the cost per episode may rise over the baseline's; None: by any."""
    max_latency_increase: float | None = None
    """The same of the p95 latency."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a verdict, or one warning beside it."""

    kind: ReasonKind
    message: str | ReasonData
    """What it is: data where any other code has to know what it says, else one sentence.

    `render.sentences.reason_sentence` returns the sentence of both.
    """
    scenario_id: str | None = None
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Judgement:
    """How one scenario stands against the pass rate it needs."""

    scenario_id: str
    gate: Gating
    status: Status
    required_pass_rate: float
    required_passes: int | None = None
    """Passes it needs, whatever the rate."""
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What the evaluations of the suite had to reach together; None: no threshold."""

    min_pass_rate: float | None = None
    min_score: float | None = None

    @property
    def are_set(self) -> bool:
        """Whether there is any."""
        return self.min_pass_rate is not None or self.min_score is not None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The conclusion, every reason against it, and what is worth saying beside it."""

    conclusion: Conclusion
    reasons: tuple[Reason, ...] = ()
    warnings: tuple[Reason, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    """One for each scenario, in the summary's order."""
    thresholds: Thresholds = Thresholds()
    increases: AllowedIncreases = AllowedIncreases()  # noqa: RUF009 - frozen
    """By how much cost and latency were allowed to rise."""
    acknowledged: tuple[WaiverStatus, ...] = ()
    """What was accepted of what comparing may find."""


def compute_share(rate: float, whole: int) -> Fraction:
    """Return a share exactly as it was written: 0.29 of 100 is 29, not 28.999999999999996."""
    return Fraction(str(rate)) * whole
