"""`episode.watch(...)`: what a test changed, checks of it, and states that cannot be read."""

from __future__ import annotations

SHOP = """
import sqlite3
import pytest
from ci_agent_eval import check
from ci_agent_eval.checks import FinalState, StateUnchanged

class Shop:
    def __init__(self, path):
        self.path = path
        self.execute("create table orders (id integer primary key, status text)")
        self.execute("insert into orders values (1, 'paid')")

    def execute(self, statement):
        connection = sqlite3.connect(self.path)
        with connection:
            connection.execute(statement)
        connection.close()

@pytest.fixture
def shop(tmp_path):
    return Shop(tmp_path / "shop.db")

def talk(episode, shop, statement="update orders set status = 'refunded'"):
    episode.watch(shop.path, "shop")
    with episode.turn("Refund order 1.") as turn:
        shop.execute(statement)
        turn.reply("Done.")
"""


def run(suite, tests, *arguments):
    suite.pytester.makepyfile(test_shop=SHOP + tests, conftest="")
    return suite.run("test_shop.py", "-W", "error", *arguments)


def changes(episode):
    return {
        change.entry: (change.before, change.after)
        for state in episode.states
        for change in state.changes
    }


REFUNDED = {"orders/1": ({"id": 1, "status": "paid"}, {"id": 1, "status": "refunded"})}


STATES = """
from ci_agent_eval import Episode, llm_episode
from ci_agent_eval.contract.state import compare_states

async def test_expected(episode, shop):
    talk(episode, shop)
    assert check(FinalState({"orders/1": {"status": "refunded"}}))

async def test_unexpected(episode, shop):
    talk(episode, shop)
    check(StateUnchanged())

async def test_after_the_check(episode, shop):
    talk(episode, shop, "select 1")
    check(StateUnchanged())
    shop.execute("delete from orders")

def test_gone(episode, shop):
    talk(episode, shop)
    assert episode.turns
    shop.path.unlink()

def test_gone_and_failed(episode, shop):
    talk(episode, shop)
    shop.path.unlink()
    assert not episode.turns

def test_secret(episode, shop):
    talk(episode, shop, "update orders set status = 'ghp_" + "a1B2" * 9 + "'")
    check(StateUnchanged())

@llm_episode()
def test_returned():
    state = compare_states("other", "value", {}, {"a": {"value": 1}})
    return Episode(scenario_id="x", states=[state], assertions=[{"name": "a", "passed": True}])
"""


def test_changes_are_recorded_and_judged(suite):
    ran = run(suite, STATES, "--episode-concurrency=2")
    ran.result.assert_outcomes(passed=3, failed=4)
    found = ran.episodes
    assert changes(found["test_expected"]) == REFUNDED
    (state,) = found["test_unexpected"].states
    assert (state.name, state.kind, state.entries, state.error) == ("shop", "database", 1, None)
    (failed,) = found["test_unexpected"].failed_assertions
    assert (failed.name, failed.reason) == (
        "leaves shop unchanged",
        'orders/1.status changed from "paid" to "refunded"',
    )
    assert changes(found["test_after_the_check"]) == {
        "orders/1": ({"id": 1, "status": "paid"}, None)
    }
    # A state that cannot be read makes a passing episode an error.
    problem = "the state of 'shop' cannot be read: OperationalError: unable to open database file"
    gone, failed = found["test_gone"], found["test_gone_and_failed"]
    assert (gone.outcome, gone.reason) == ("error", problem)
    assert (failed.outcome, failed.states[0].error) == ("failed", problem)
    ran.result.stdout.fnmatch_lines([f"*{problem}*"])
    assert "a1B2a1B2" not in (ran.folder / "results.json").read_text()
    assert list(changes(found["test_secret"])) == ["orders/1"]
    assert changes(found["test_returned"]) == {"a": (None, {"value": 1})}


def test_mistakes_are_named(suite):
    ran = run(
        suite,
        """
def test_twice(episode, shop):
    episode.watch(shop.path, "shop")
    with pytest.raises(Exception, match="a state 'shop' is watched already; give this one"):
        episode.watch(shop.path, "shop")
    with pytest.raises(Exception, match="^episode.watch.ignore: "):
        episode.watch(shop.path, "other", ignore=[3])
    with pytest.raises(Exception, match="cannot be watched"):
        episode.watch(3)
    with episode.turn("Hi") as turn:
        turn.reply("Hi")

@pytest.fixture
def kept():
    kept = []
    yield kept
    with pytest.raises(Exception, match="has ended: record the watched state before"):
        kept[0].watch(dict)

def test_late(episode, kept):
    kept.append(episode)
    with episode.turn("Hi") as turn:
        turn.reply("Hi")
    assert episode.turns
""",
    )
    # What was refused is not in the record, so that the episode proves nothing.
    ran.result.assert_outcomes(passed=1, failed=1, errors=1)
    refused = "episode.watch: a state 'shop' is watched already"
    assert ran.episodes["test_twice"].reason.startswith(refused)
    assert "has ended: record the watched state before" in ran.episodes["test_late"].reason
    assert {e.outcome for e in ran.results.episodes} == {"error"}
