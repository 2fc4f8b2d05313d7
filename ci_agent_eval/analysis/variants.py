"""The values of a comparison of variants; all are frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

VariantMeasure = Literal["pass_rate", "score", "cost_usd", "tokens", "typical_latency_ms"]


MOST_COMPARED = 50
"""Pairs that are compared, the first by name."""


@dataclass(frozen=True, slots=True)
class VariantFigure:
    """A measure of two variants: means over the scenarios that both measured."""

    measure: VariantMeasure
    first: float
    second: float
    interval: tuple[float, float] | None
    """95 % interval of the difference of a pass rate or score, or of the relative difference of
    another measure; None: too few scenarios or iterations."""
    differs: bool
    """Whether the difference is more than chance."""
    scenarios: int
    """Number of scenarios that both measured."""


@dataclass(frozen=True, slots=True)
class VariantScenario:
    """Passed and judged iterations of a scenario by two variants."""

    scenario_id: str
    first_passed: int
    first_judged: int
    second_passed: int
    second_judged: int
    differs: bool
    """Whether the pass rates differ by more than chance."""
    adaptive: bool
    """Whether only the iterations that always ran count, for a side ran more because of them."""


@dataclass(frozen=True, slots=True)
class VariantPair:
    """Two variants, by the scenarios that both ran."""

    first: str
    second: str
    figures: tuple[VariantFigure, ...]
    scenarios: tuple[VariantScenario, ...]
