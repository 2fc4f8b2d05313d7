"""The rules by which imported traces are judged."""

from __future__ import annotations

from pydantic import Field

from ci_agent_eval.contract.base import KnownKeysModel
from ci_agent_eval.contract.budgets import Budgets
from ci_agent_eval.contract.scenario import ScenarioChecks


class TraceRules(KnownKeysModel):
    """`[traces]`: checks and budgets of each trace, as in scenario files."""

    checks: ScenarioChecks = Field(default_factory=ScenarioChecks)
    budgets: Budgets = Field(default_factory=Budgets)

    @property
    def is_empty(self) -> bool:
        """Whether nothing would be judged."""
        has_checks = any(value or value == 0 for _, value in self.checks)
        return not has_checks and not any(True for _ in self.budgets.iter_named())
