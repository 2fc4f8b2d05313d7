"""Budgets of a suite stop a run of any pytest, with workers, reruns and other people's loops."""

from __future__ import annotations

import pytest

SUITE = """
import asyncio
import os
import pytest

TURNS = asyncio.Lock()
IS_WAITING = os.environ.get("PYTEST_XDIST_WORKER") == "gw1"

@pytest.mark.parametrize("number", range(12))
async def test_costs(episode, number):
    async with TURNS:  # so that the stop reaches those that have spent nothing
        if IS_WAITING:
            await asyncio.Event().wait()  # until the run stops for what the other worker spent
        with episode.turn("Hello") as turn:
            turn.reply("Hi", tokens=10, cost_usd=0.25)
        await asyncio.sleep(0.05)
"""

NEEDS_EVIDENCE = False


@pytest.mark.parametrize("arguments", [(), ("-n2",)], ids=["alone", "workers"])
def test_a_run_stops_at_its_budget_and_says_so(suite, arguments):
    suite.write(test_suite=SUITE)
    ran = suite.run("--total-cost-usd=0.4", *arguments, plugins=("xdist",))
    assert ran.status == 2, ran.output
    assert ran.session["stopped"] == "suite budget total_cost_usd exceeded: $0.50 of $0.40"
    # Those that are side by side have begun together.
    assert 2 <= len(ran.episodes) <= 12
    left = 12 - len(ran.episodes)
    assert f"{left} of 12 selected episodes did not run" in ran.output
    begun = {episode["scenario_id"] for episode in ran.episodes}
    assert len(set(ran.session["unafforded"]) - begun) == left
    assert "error" in ran.outcomes.values()


def test_an_attempt_after_the_stop_spends_nothing(suite):
    suite.write(
        test_suite="""
        def test_again(episode):
            with episode.turn("Hello") as turn:
                turn.reply("Hi", cost_usd=0.25)
            assert False
        """
    )
    ran = suite.run("--total-cost-usd=0.4", "--reruns=4", plugins=("rerunfailures",))
    assert ran.status == 2, ran.output
    priced = [e for e in ran.episodes if e.get("trajectory")]
    assert len(priced) == 2


def test_it_stops_with_another_async_plugin_in_its_mode_auto(suite):
    suite.write(test_suite=SUITE)
    suite.configure_asyncio(asyncio_mode="auto")
    ran = suite.run("--total-cost-usd=0.3", plugins=("pytest_asyncio.plugin",))
    assert ran.status == 2, ran.output
    assert "error" in ran.outcomes.values()
