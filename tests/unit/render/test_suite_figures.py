"""Figures and evidence that several renderings share."""

from __future__ import annotations

from ci_agent_eval.render.suite_figures import list_ending, list_figures
from tests.builders import episode, report, turn

JUDGE = {"calls": 3, "tokens": {"input": 900, "output": 100}, "cost_usd": 0.25}
USED = {"trajectory": {"turns": [turn(cost_usd=0.5, tokens={"input": 40, "output": 10})]}}


def told(built):
    return {figure.label: figure.text for figure in list_figures(built)}


def test_a_judge_without_a_price_is_said():
    built = report(episode(judge={**JUDGE, "cost_usd": None}, **USED))
    assert told(built)["total cost (including judge)"] == "at least $0.50 ($0.00)"
    assert "1 episode without a price of the judge" in list(list_ending(built))


def test_a_retry_without_a_price_is_no_further_episode():
    unpriced = {"trajectory": {"turns": [turn(source="live")]}}
    tries = (
        episode(attempt=n, outcome=end, **unpriced) for n, end in ((1, "failed"), (2, "passed"))
    )
    assert "1 episode without a cost" in list(list_ending(report(*tries)))
