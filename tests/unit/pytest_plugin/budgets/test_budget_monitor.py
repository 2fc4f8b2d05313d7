from __future__ import annotations

from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.pytest_plugin.budgets.budget_monitor import SuiteBudgetMonitor, SuiteLimits


def test_what_is_used_up_to_the_limit_is_not_exceeded():
    """Whatever many small costs add up to, in whatever order; the last word on each counts."""
    limits = SuiteLimits({"total_cost_usd": 0.3, "total_tokens": 10})
    suite = SuiteBudgetMonitor(limits, Usage, clock=lambda: 100.0, started=100.0)
    for _ in range(2):
        suite.spend("a", Usage(tokens=5, cost_usd=0.1))
        suite.spend("b", Usage(tokens=5, cost_usd=0.2))
    assert suite.find_exceeded() is None
    suite.spend("b", Usage(tokens=6, cost_usd=0.2))
    assert suite.find_exceeded().sentence == "suite budget total_tokens exceeded: 11 of 10"
