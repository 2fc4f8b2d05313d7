"""pytest-xdist: whichever worker runs an episode, all records exist, with the same bytes."""

from __future__ import annotations

import pytest

SUITE = """
import itertools
import os
import pytest

@pytest.fixture
def episode_clock():
    steps = itertools.count()
    return lambda: next(steps) / 10

@pytest.mark.episode(scenario_id="tiers", budgets={"max_turns": 1})
@pytest.mark.parametrize("tier", range(20))
def test_tiers(episode, tier):
    with episode.turn(f"I am {tier}") as turn:
        turn.reply("Hi", tokens=tier, cost_usd=0.1)
    episode.check("known", tier % 5 != 0)

@pytest.mark.episode(iterations=4)
async def test_async(episode):
    assert episode.iteration != 2

def test_plain(): pass
"""


@pytest.fixture
def suite(suite):
    """These suites are about workers, and need no evidence."""
    return suite.without_evidence()


@pytest.mark.parametrize("dist", ["load", "loadfile", "loadscope", "worksteal", "each"])
def test_four_workers_leave_what_one_process_leaves(suite, dist):
    suite.write(test_suite=SUITE)
    alone = suite.run()
    number = "1" if dist == "each" else "4"
    ran = suite.run(f"-n{number}", f"--dist={dist}", plugins=("xdist",))
    assert ran.status == alone.status == 1, ran.output
    assert len(ran.episodes) == 24
    assert (ran.results, ran.junit) == (alone.results, alone.junit)
    assert ran.session["selected"] == 24
