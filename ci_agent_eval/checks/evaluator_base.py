"""The parts of a check that is an evaluator of any library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.checks.base import BaseCheck
from ci_agent_eval.contract.episode import Assertion
from ci_agent_eval.errors import AgentEvalError, InputError


class EvaluatorError(AgentEvalError):
    """Raised if an evaluator raises or gives no result: the episode is an infrastructure error."""


@dataclass(frozen=True, slots=True)
class BaseEvaluatorCheck(BaseCheck):
    """An evaluator with the values that it is given; see `from_evaluator`."""

    evaluator: Any
    expected_output: Any = None
    inputs: Any = None
    output: Any = None
    metadata: Any = None
    threshold: float | None = None
    scale: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        low, _ = self._get_scale()
        if self.threshold is not None and self.threshold <= low:
            raise InputError(
                f"from_evaluator: threshold {self.threshold:g} is the bottom of the scale, which "
                f"everything reaches; give a number above {low:g}"
            )

    @property
    def _label(self) -> str:
        """The evaluator's name in errors."""
        return str(getattr(self.evaluator, "name", "") or type(self.evaluator).__name__)

    def _get_scale(self) -> tuple[float, float]:
        return self.scale or (0.0, 1.0)

    def _convert_number(
        self,
        key: str,
        value: float,
        given: str | None,
        verdict: tuple[bool, float] | None = None,
    ) -> Assertion:
        """Convert a number; `verdict` is the library's, with its threshold.

        Raises InputError for a number outside the scale.
        """
        low, high = self._get_scale()
        if not math.isfinite(value) or not low <= value <= high:
            raise InputError(
                f"evaluator {self._label}: {key} is {value:g}, which is not from {low:g} to "
                f"{high:g}; give its scale, from_evaluator(…, scale=(lowest, highest))"
            )
        minimum = high if self.threshold is None else self.threshold
        passed, limit = value >= minimum, f"passes from {minimum:g}"
        if verdict is not None:
            passed, limit = verdict[0], f"threshold {verdict[1]:g}"
        reason = f"{value:g}, {limit}{f': {given}' if given else ''}"
        return self._build_assertion(key, passed, reason, score=(value - low) / (high - low))
