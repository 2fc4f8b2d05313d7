"""The points of a trend: what each run's own report said."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.model import Baseline, BaselineRun, TrendPoint
from tests.builders import episode, failing, loaded, report, turn


def costing(usd):
    return {"trajectory": {"turns": [turn(cost_usd=usd)]}}


def run(*episodes, commit=None, label="nightly"):
    return BaselineRun(loaded(*episodes).episodes, commit, label)


def trend(*now, runs):
    return report(*now, baseline=Baseline("main", tuple(runs))).comparison.trend


def test_the_oldest_is_first_and_this_run_last():
    points = trend(
        episode("a", **costing(0.3)),
        failing("a", iteration=2, **costing(0.5)),
        runs=[
            run(episode("a", **costing(0.2)), commit="4f2a91c0d1"),
            run(failing("a", **costing(0.1)), episode("gone", **costing(0.4))),
        ],
    )
    assert points == (
        TrendPoint("nightly", 0.5, 0.25, 0.5),
        TrendPoint("4f2a91c", 1.0, 0.2, 0.2),
        TrendPoint("", 0.5, 0.4, 0.8),
    )


def test_a_retry_costs_and_its_last_attempt_counts():
    (before, _) = trend(
        episode("a"),
        runs=[
            run(failing("a", attempt=1, **costing(0.1)), episode("a", attempt=2, **costing(0.2)))
        ],
    )
    assert (before.pass_rate, before.cost_usd) == (1.0, 0.3)


def test_what_was_not_measured_is_not_made_up():
    (before, now) = trend(
        episode("a", outcome="error"),
        runs=[run(episode("a", **costing(0.1)), episode("b"))],
    )
    assert (before.pass_rate, before.cost_usd) == (1.0, None)
    assert (now.pass_rate, now.cost_usd) == (None, None)
