"""pytest-xdist: whichever worker runs an episode, all records exist, with the same bytes."""

from __future__ import annotations

import json

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


@pytest.fixture
def alone(suite):
    suite.write(test_suite=SUITE)
    return suite.run()


@pytest.mark.parametrize("dist", ["load", "loadfile", "loadscope", "worksteal", "each"])
def test_four_workers_leave_what_one_process_leaves(suite, alone, dist):
    number = "1" if dist == "each" else "4"
    ran = suite.run(f"-n{number}", f"--dist={dist}", plugins=("xdist",))
    assert ran.status == alone.status == 1, ran.output
    assert len(ran.episodes) == 24
    assert ran.results == alone.results
    assert ran.junit == alone.junit
    assert ran.session["selected"] == 24


def test_a_worker_that_dies_leaves_its_episode_as_an_error(suite):
    suite.write(
        test_dies="""
        import os
        import pytest

        @pytest.mark.parametrize("number", range(8))
        def test_one(episode, number):
            if number == 3:
                os._exit(1)
        """
    )
    ran = suite.run("-n2", plugins=("xdist",))
    assert ran.status == 1, ran.output
    assert ran.session["selected"] == 8
    assert ran.outcomes == {
        f"test_one[{number}]": "error" if number == 3 else "passed" for number in range(8)
    }
    assert ran.reasons["test_one[3]"] == "the process ended before the episode did"


@pytest.mark.parametrize("limit", ["-x", "--maxfail=2"])
def test_a_limit_stops_the_workers_and_is_said(suite, alone, limit):
    ran = suite.run("-n2", limit, plugins=("xdist",))
    assert ran.status == 2, ran.output
    assert ran.session["stopped"].startswith("stopping after")
    assert json.loads(ran.results)["complete"] is False
