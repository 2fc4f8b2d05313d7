"""What comparing adds to the gate: its reasons, its warnings, and what it leaves alone."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.comparison.findings import is_certain_increase
from ci_agent_eval.analysis.comparison.model import MetricChange
from ci_agent_eval.errors import InputError
from ci_agent_eval.render.formats.document import parse_verdict, render_verdict
from tests.builders import baseline, episode, failing, report
from tests.tables import each_row

LAX = {"min_pass_rate": 0.0}


def run(passed=1, failed=0, scenario="refund", **fields):
    made = [episode(scenario, iteration=i + 1, **fields) for i in range(passed)]
    return made + [failing(scenario, iteration=passed + i + 1, **fields) for i in range(failed)]


def judged_by(judge):
    return {"conditions": {"judge": judge}}


def test_a_verdict_that_sets_failures_aside_is_not_believed():
    before = baseline(run(20, **judged_by("a")))
    odd = episode(iteration=30, **judged_by("b"))
    built = report(*run(20, 1, **judged_by("a"), **LAX), odd, baseline=before)
    text = render_verdict(built)
    assert '"set_aside": 1' in text
    with pytest.raises(InputError, match="contradicts its results"):
        parse_verdict(text.replace('"set_aside": 1', '"set_aside": 2'))


@each_row(
    ("before", "least", "expected"),
    [(1.0, 0.11, True), (1.0, 0.1, False), (1.0, None, False), (0.0, None, True)],
)
def test_a_rise_is_certain_where_its_lower_limit_is_above_the_allowed_one(before, least, expected):
    assert is_certain_increase(MetricChange(before, 1.5, 3, 3, least=least), 0.1) is expected
