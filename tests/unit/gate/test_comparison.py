"""What comparing adds to the gate: its reasons, its warnings, and what it leaves alone."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.findings import is_certain_increase
from ci_agent_eval.analysis.comparison.model import MetricChange
from tests.tables import each_row


@each_row(
    ("before", "least", "expected"),
    [(1.0, 0.11, True), (1.0, 0.1, False), (1.0, None, False), (0.0, None, True)],
)
def test_a_rise_is_certain_where_its_lower_limit_is_above_the_allowed_one(before, least, expected):
    assert is_certain_increase(MetricChange(before, 1.5, 3, 3, least=least), 0.1) is expected
