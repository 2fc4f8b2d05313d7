from __future__ import annotations

from ci_agent_eval.contract.usage import Usage
from ci_agent_eval.pytest_plugin.budgets.budget_stop import find_exceeded_limit


def test_what_is_used_up_to_the_limit_is_not_exceeded():
    """Whatever many small costs add up to, in whatever order."""
    limits = {"total_cost_usd": 0.3, "total_tokens": 10}
    spent = Usage(tokens=5, cost_usd=0.1) + Usage(tokens=5, cost_usd=0.2)
    assert find_exceeded_limit(limits, spent, elapsed_s=9.0) is None
    over = find_exceeded_limit(limits, spent + Usage(tokens=1), elapsed_s=9.0)
    assert over.sentence == "suite budget total_tokens exceeded: 11 of 10"
