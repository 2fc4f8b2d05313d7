from __future__ import annotations

from ci_agent_eval.results.importers import values
from tests.tables import each_row


@each_row("value", [True, False, None, "7", [], float("nan"), float("inf"), 10**300])
def test_what_is_no_number_is_not_measured(value):
    assert values.as_number(value) is None
    assert values.build_usage(value, 5) is None
