"""Budgets of episodes that never took a turn: not measured, and not taken for zero."""

from __future__ import annotations

from ci_agent_eval.analysis.loaded_results import build_episode_record

SUITE = """
import pytest

LIMITS = {"max_turns": 2, "tool_calls": 3, "latency_ms": 100}
pytestmark = pytest.mark.episode(budgets=LIMITS, evidence="none")

def test_no_fixture(): pass

def test_unused(episode): episode.check("fine", True)

def test_skips(episode): pytest.skip("not today")

def test_breaks(episode): raise KeyError("x")

def test_breaks_in_its_turn(episode):
    with episode.turn("Hello"):
        raise KeyError("x")
"""

NOT_MEASURED = [("max_turns", None), ("tool_calls", None), ("latency_ms", None)]


def test_a_budget_is_owed_by_those_that_passed_alone(suite):
    suite.write(SUITE)
    ran = suite.run()
    for name in ("test_no_fixture", "test_unused"):
        violations = ran.episodes[name].violations
        assert [(v.budget, v.observed) for v in violations] == NOT_MEASURED
    for name in ("test_skips", "test_breaks", "test_breaks_in_its_turn"):
        assert ran.episodes[name].violations == ()
        assert build_episode_record(ran.episodes[name]).violations == ()
        assert f"BUDGET test_suite.py::{name}:" not in ran.result.stdout.str()
    assert "BUDGET test_suite.py::test_unused:" in ran.result.stdout.str()


STRICTER = """
import pytest

pytestmark = pytest.mark.episode(
    budgets={"tool_calls": 1, "latency_ms": {"p95": None, "limit": 100}, "custom": {"emails": 1}},
    evidence="none",
)

def test_worst_record(episode):
    episode.budget("pages", limit=1, used=3)
    episode.budget("pages", limit=1, used=0)
    episode.budget("pages", limit=9)
def test_measured_later(episode):
    episode.budget("emails", limit=1, used=0)
def test_looser_limit(episode):
    episode.budget("tool_calls", limit=9, hard=False)
    episode.budget("emails", limit=9, used=3)
def test_stricter_limit(episode):
    episode.budget("tool_calls", limit=0)
    episode.budget("emails", limit=0.5, used=0)
    episode.budget("latency_ms", limit=50)
def test_other_statistic(episode): episode.budget("latency_ms", limit=200, statistic="max")
def test_returned(episode):
    from ci_agent_eval import Episode
    episode.budget("emails", limit=1, used=3)
    return Episode(scenario_id="x", budgets={"custom": {"emails": {"used": 0, "limit": 9}}})
"""


def test_a_budget_set_again_only_becomes_stricter(suite):
    suite.write(STRICTER)
    episodes = suite.run("-W", "ignore").episodes
    found = {
        name: {key: (b.limit, b.used, b.hard) for key, b in one.budgets.iter_named()}
        for name, one in episodes.items()
    }
    assert found["test_worst_record"]["pages"] == (1, 3, True)
    assert found["test_measured_later"]["emails"] == (1, 0, True)
    assert found["test_looser_limit"]["tool_calls"] == (1, None, True)
    assert found["test_looser_limit"]["emails"] == (1, 3, True)
    assert [limit for limit, *_ in found["test_stricter_limit"].values()] == [0, 50, 0.5]
    assert found["test_returned"]["emails"] == (1, 3, True)
    assert (
        "budget 'latency_ms': it is already set for p95" in episodes["test_other_statistic"].reason
    )
