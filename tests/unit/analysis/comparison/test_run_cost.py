"""The cost of the compared runs: what each run's own report said."""

from __future__ import annotations

from ci_agent_eval.analysis.comparison.model import Baseline, BaselineRun, RunCost
from tests.builders import episode, failing, loaded, report, turn


def costing(usd):
    return {"trajectory": {"turns": [turn(cost_usd=usd)]}}


def run(*episodes):
    return BaselineRun(loaded(*episodes).episodes)


def costs(*now, runs):
    found = report(*now, baseline=Baseline("main", tuple(runs))).comparison
    return found.latest_cost, found.head_cost


def test_the_latest_run_of_the_baseline_and_this_run_have_their_whole_cost():
    assert costs(
        episode("a", **costing(0.3)),
        failing("a", iteration=2, **costing(0.5)),
        runs=[
            run(failing("a", **costing(0.1)), episode("gone", **costing(0.4))),
            run(episode("a", **costing(0.2))),
        ],
    ) == (RunCost(0.25, 0.5), RunCost(0.4, 0.8))


def test_a_retry_costs():
    tried = run(failing("a", attempt=1, **costing(0.1)), episode("a", attempt=2, **costing(0.2)))
    assert costs(episode("a"), runs=[tried])[0] == RunCost(0.3, 0.3)


def test_what_was_not_measured_is_not_made_up():
    base = run(episode("a", **costing(0.1)), episode("b"))
    assert costs(episode("a", outcome="error"), runs=[base]) == (RunCost(), RunCost())
