from __future__ import annotations

import pytest

from ci_agent_eval.pytest_plugin.budgets.budget_monitor import SuiteLimits
from ci_agent_eval.recording.spending import SuiteUsage


def limits(cost_usd=None, tokens=None, wall_time_s=None):
    given = {"total_cost_usd": cost_usd, "total_tokens": tokens, "total_wall_time_s": wall_time_s}
    return SuiteLimits({name: limit for name, limit in given.items() if limit is not None})


@pytest.mark.parametrize(
    ("limits", "spent", "elapsed_s", "sentence"),
    [
        (limits(5.0), SuiteUsage(5.02), 0, "total_cost_usd exceeded: $5.02 of $5.00"),
        (limits(5.0), SuiteUsage(5.0004), 0, "total_cost_usd exceeded: $5.0004 of $5.0000"),
        (limits(0.0005), SuiteUsage(3.0), 0, "total_cost_usd exceeded: $3.0000 of $0.0005"),
        (limits(0.0), SuiteUsage(1e-6), 0, "total_cost_usd exceeded: $0.000001 of $0.000000"),
        (limits(None, 100), SuiteUsage(0, 101), 0, "total_tokens exceeded: 101 of 100"),
        (
            limits(None, None, 60),
            SuiteUsage(),
            60.26,
            "total_wall_time_s exceeded: 60.3 s of 60.0 s",
        ),
        (limits(5.0, 100), SuiteUsage(9.0, 101), 0, "total_cost_usd exceeded: $9.00 of $5.00"),
    ],
)
def test_what_is_exceeded_is_said_with_its_figures(limits, spent, elapsed_s, sentence):
    assert limits.find_exceeded(spent, elapsed_s).sentence == f"suite budget {sentence}"


@pytest.mark.parametrize(
    ("limits", "spent", "elapsed_s"),
    [
        (limits(), SuiteUsage(1e9, 10**9), 1e9),
        (limits(5.0, 100, 60), SuiteUsage(5.0, 100), 60),
        # As many small costs add up, whatever their order.
        (limits(5.0), SuiteUsage(sum([0.01] * 500)), 0),
        (limits(0.3), SuiteUsage(0.1 + 0.2), 0),
    ],
)
def test_what_is_used_up_to_the_limit_is_not_exceeded(limits, spent, elapsed_s):
    assert limits.find_exceeded(spent, elapsed_s) is None
