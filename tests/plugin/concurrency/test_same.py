"""What a run says and leaves is the same at every concurrency."""

from __future__ import annotations

import re
from textwrap import dedent

from tests.plugin.conftest import SCRIPTED_CLOCK

MIXED = '''
import asyncio
import logging
import sys
import warnings

import pytest

log = logging.getLogger("desk")

@pytest.fixture
def desk(request):
    print("opened for", request.node.name)
    yield "desk"
    print("closed after", request.node.name)

@pytest.fixture(scope="module")
def bank():
    print("bank opened")
    yield []
    print("bank closed")

@pytest.fixture
def broken():
    print("about to break")
    raise OSError("no desk")

@pytest.fixture
def breaks_later():
    yield
    print("about to break later")
    raise OSError("jammed")

@pytest.mark.parametrize("tier", ["gold", "basic", "none"])
async def test_tiers(episode, desk, tier):
    """Ends out of order: the first waits longest."""
    with episode.turn(f"I am {tier}") as turn:
        for _ in range(20 if tier == "gold" else 1):
            await asyncio.sleep(0)
        print("served", tier)
        turn.tool_call("lookup", {"tier": tier}, result=tier)
        turn.reply("Hi", tokens=7, cost_usd=0.1)
    log.warning("served %s", tier)
    warnings.warn(f"slow {tier}")
    episode.check("known", tier != "none", "who?")

async def test_fails(episode, bank):
    print("on stderr", file=sys.stderr)
    assert [1, 2] == [1, 3]

async def test_errors(bank, episode):
    raise ConnectionError("refused")

async def test_broken(broken, episode): pass
async def test_breaks_later(episode, breaks_later): pass

@pytest.mark.skip(reason="later")
async def test_skipped(episode): pass

async def test_skips_itself(episode):
    await asyncio.sleep(0)
    pytest.skip("not today")

@pytest.mark.xfail(reason="known")
async def test_expected(episode):
    assert False

def test_plain(episode, desk): print("plain")

def test_recorded_later(request):
    request.getfixturevalue("episode").check("asked", True)

class TestDesk:
    def setup_method(self):
        self.fresh = True

    async def test_one(self, episode, bank):
        assert self.fresh
        self.fresh = False
        bank.append(1)

    @pytest.mark.episode(iterations=3, budgets={"latency_ms": 10, "tool_calls": 1})
    async def test_two(self, episode, bank):
        assert self.fresh
        self.fresh = False
        with episode.turn("Hello") as turn:
            await asyncio.sleep(0)
            turn.reply("Hi")
'''

VARYING = [
    (r"\b\d+\.\d+s\b", "TIME"),
    (r"0x[0-9a-f]+", "ADDRESS"),
    (r'(time|timestamp)="[^"]*"', r"\1"),
    (r"--basetemp=\S+", ""),
    (r"=+", "="),
    # Said of a concurrent run alone.
    (r"note: \d+ of the episodes run alone .*\n", ""),
    (r"created: \d+/\d+ workers.*", ""),
]


def settled(text: str) -> str:
    """Return a text without what no two runs have in common."""
    for found, instead in VARYING:
        text = re.sub(found, instead, text)
    return text


def left(ran) -> tuple[bytes, list[str]]:
    """Return the results of a run, and its cases in JUnit: workers report as they end."""
    junit = settled((ran.folder / "junit.xml").read_text("utf-8")).split("<testcase")[1:]
    cases = sorted(case.partition("</testsuite>")[0] for case in junit)
    return (ran.folder / "results.json").read_bytes(), cases


def test_the_same_bytes_over_workers(suite):
    suite.write(MIXED)
    expected = left(suite.run_apart())
    assert len(expected[1]) == 16
    assert left(suite.run_apart("-n2", "--episode-concurrency=4")) == expected


def test_reports_come_in_the_order_of_the_run_and_the_journal_says_which_had_begun(suite):
    conftest = """
    import pytest

    told = []

    def pytest_runtest_logreport(report):
        told.append(f"{report.when} {report.nodeid} {report.outcome}")

    def pytest_sessionfinish(session):
        (session.config.rootpath / "told.txt").write_text("\\n".join(told))
    """
    suite.write(MIXED, conftest=SCRIPTED_CLOCK + dedent(conftest))
    told, journals = [], []
    for concurrency in (1, 8):
        journals.append(suite.run(f"--episode-concurrency={concurrency}").journal)
        told.append((suite.pytester.path / "told.txt").read_text().splitlines())
    assert len(told[0]) == 46
    assert told[0] == told[1]
    ended = [[line.episode for line in j if line.event == "ended"] for j in journals]
    started = [[line.episode for line in j if line.event == "started"] for j in journals]
    assert [e.nodeid for e in started[0]] == [e.nodeid for e in started[1]]
    assert [e.outcome for e in ended[0]] == [e.outcome for e in ended[1]]
    first = [line.event for line in journals[1]].index("ended")
    assert first > 1, "none was started ahead"


def test_durations_are_those_of_the_episodes(suite):
    suite.write("""
        import asyncio
        import time
        import pytest

        @pytest.fixture
        def slow():
            time.sleep(0.2)

        async def test_long(episode):
            await asyncio.sleep(0.6)

        async def test_beside_it(slow, episode):
            await asyncio.sleep(0.3)
    """)
    ran = suite.run("--episode-concurrency=2", "--durations=0", "-vv")
    lines = [line.split() for line in ran.result.outlines if "test_suite.py::" in line]
    took = {
        (line[1], line[2].partition("::")[2]): float(line[0].removesuffix("s"))
        for line in lines
        if line[0].endswith("s")
    }
    assert took["call", "test_beside_it"] >= 0.3
    assert took["setup", "test_beside_it"] >= 0.2
    assert took["call", "test_long"] >= 0.6
