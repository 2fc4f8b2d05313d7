"""Variants side by side, in words."""

from __future__ import annotations

from ci_agent_eval.render.report_view import build_report_view
from tests.builders import episode, failing, report


def ran(agent, passes, iterations=1, scenarios=1, **overrides):
    """Episodes of a variant, of which the first `passes` of each scenario pass."""
    return [
        (episode if number <= passes else failing)(
            f"s{at}",
            agent=agent,
            nodeid=f"tests/test_x.py::test_{at}[{agent}]",
            iteration=number,
            iterations=iterations,
            **overrides,
        )
        for at in range(scenarios)
        for number in range(1, iterations + 1)
    ]


def view(*groups):
    return build_report_view(report(*(one for group in groups for one in group))).variants


def test_variants_that_were_not_judged_are_counted():
    shown = view(
        ran("a", 1, outcome="skipped", reason="no key"),
        ran("b", 1),
        ran("c", 1),
    )
    assert [(table.first, table.second) for table in shown.tables] == [("b", "c")]
    assert shown.rest == "not compared, without judged iterations: 1 variant"
