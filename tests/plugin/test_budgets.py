"""Budgets of episodes that never took a turn: not measured, and not taken for zero."""

from __future__ import annotations

import pytest

from ci_agent_eval.analysis.loaded_results import build_episode_record
from ci_agent_eval.contract.results import JournalLine

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


@pytest.mark.parametrize("name", ["test_no_fixture", "test_unused"])
def test_one_that_passed_without_turns_has_not_measured_them(suite, name):
    suite.write(SUITE)
    episode = suite.run("-k", name).episodes[name]
    assert [(v.budget, v.observed) for v in episode.violations] == NOT_MEASURED


@pytest.mark.parametrize("name", ["test_skips", "test_breaks", "test_breaks_in_its_turn"])
def test_one_that_came_to_no_turn_owes_nothing(suite, name):
    suite.write(SUITE)
    ran = suite.run("-k", name)
    assert ran.episodes[name].violations == ()
    assert build_episode_record(ran.episodes[name]).violations == ()
    assert "BUDGET" not in ran.result.stdout.str()


def test_what_is_read_back_is_what_was_written(suite):
    suite.write(SUITE)
    ran = suite.run()
    for line in ran.journal:
        again = JournalLine.model_validate_json(line.model_dump_json())
        assert again.episode.violations == line.episode.violations
        for budget in ("max_turns", "tool_calls"):
            used = getattr(again.episode.budgets, budget).used
            assert used is None or again.episode.trajectory is not None
