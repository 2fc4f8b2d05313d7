"""pytest-randomly: the order of the tests does not show in what is written."""

from __future__ import annotations

import re

SUITE = """
import itertools
import random
import pytest

@pytest.fixture
def episode_clock():
    steps = itertools.count()
    return lambda: next(steps) / 10

@pytest.mark.episode(scenario_id="tiers")
@pytest.mark.parametrize("tier", range(10))
def test_tiers(episode, tier):
    with episode.turn(f"I am {tier}") as turn:
        turn.reply("Hi", tokens=tier, cost_usd=0.1)
    episode.check("known", tier % 4 != 0)

@pytest.mark.episode(iterations=3)
async def test_async(episode):
    assert episode.iteration != 2

@pytest.mark.episode
class TestDesk:
    def test_errors(self): raise ConnectionError("refused")
    def test_skips(self): pytest.skip("no weather")
"""


def order_of(ran):
    """Return the tests in the order in which they ran."""
    return re.findall(r"test_suite\.py::\S+", ran.output.partition("= FAILURES =")[0])


def test_any_order_gives_the_same_bytes(suite):
    suite.write(test_suite=SUITE)
    seeds = ("--randomly-seed=1", "--randomly-seed=2")
    shuffled = [suite.run("-v", seed, plugins=("randomly",)) for seed in seeds]
    runs = [suite.run("-v"), *shuffled]
    first, second, third = map(order_of, runs)
    assert sorted(first) == sorted(second) == sorted(third)
    assert first != second != third
    assert len({ran.results for ran in runs}) == 1
    assert len(first) == len(runs[0].episodes) == 15
