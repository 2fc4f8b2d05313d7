"""The same episodes are the same bytes, whoever ran them and in whatever order."""

from __future__ import annotations

from tests.plugin.conftest import SCRIPTED_CLOCK

SUITE = """
import pytest

@pytest.mark.episode(scenario_id="shared", budgets={"tool_calls": 2, "latency_ms": 150})
@pytest.mark.parametrize("tier", ["gold", "basic", "\u00fcber", "a::b", "none"])
def test_tiers(episode, tier):
    with episode.turn(f"I am {tier}") as turn:
        turn.tool_call("lookup", {"tier": tier, "all": {"b", "a"}}, result=object())
        turn.reply("Hi", tokens=7, cost_usd=0.1)
    episode.check("known", tier != "none", "who?")

def test_fails(episode):
    assert [object] == {"a": object()}

def test_errors(episode):
    raise ConnectionError(object())

@pytest.mark.skip(reason="later")
def test_skipped(episode): pass

class TestDesk:
    async def test_async(self, episode): pass
"""

SHUFFLED = (
    SCRIPTED_CLOCK
    + """
import os
import random

def pytest_collection_modifyitems(items):
    random.Random(os.environ["SHUFFLE"]).shuffle(items)
"""
)


def test_workers_order_and_hash_seed_do_not_show(suite, monkeypatch):
    suite.write(SUITE, conftest=SHUFFLED)
    seen = set()
    for number, workers in enumerate(["-n0", "-n0", "-n3"]):
        monkeypatch.setenv("SHUFFLE", str(number))
        monkeypatch.setenv("PYTHONHASHSEED", str(number))
        ran = suite.run_apart(workers)
        assert ran.session.selected == 9
        seen.add((ran.folder / "results.json").read_bytes())
    (only,) = seen
    assert only.count(b'"scenario_id"') == 9
