"""All of them at once, loaded as pytest loads whatever is installed."""

from __future__ import annotations

from importlib.metadata import entry_points

SUITE = """
import asyncio
import signal
import anyio
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings, strategies as st

tries = []

@pytest.fixture
def anyio_backend(): return "asyncio"

@pytest.fixture
def episode_clock(): return lambda: 0.0

@pytest_asyncio.fixture
async def its_loop(): return asyncio.get_running_loop()

@pytest.mark.asyncio
async def test_asyncio(episode, its_loop):
    assert asyncio.get_running_loop() is its_loop

@pytest.mark.anyio
async def test_anyio(episode):
    await anyio.sleep(0)
    episode.check("polite", False)

async def test_unclaimed(episode):
    await asyncio.sleep(0)

@pytest.mark.flaky(reruns=2)
def test_flaky(episode):
    tries.append(1)
    assert len(tries) == 2

@pytest.mark.timeout(100)
async def test_slow(episode):
    # Between two steps of the loop, whichever process runs it: the reason names no line.
    asyncio.get_running_loop().call_soon(signal.raise_signal, signal.SIGALRM)
    await asyncio.Event().wait()

@settings(database=None, deadline=None, derandomize=True, max_examples=5,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.booleans())
def test_property(episode, flag): pass

@settings(database=None, deadline=None, derandomize=True,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers())
def test_broken_property(episode, number):
    assert number < 10

@pytest.mark.episode(iterations=2)
@pytest.mark.parametrize("tier", ["gold", "basic"])
def test_tiers(tier): pass

def test_plain(): pass
"""

OUTCOMES = {
    "test_asyncio": "passed",
    "test_anyio": "failed",
    "test_unclaimed": "passed",
    "test_flaky": "passed",
    "test_slow": "failed",
    "test_property": "passed",
    "test_broken_property": "failed",
    "test_tiers[gold-1-of-2]": "passed",
    "test_tiers[gold-2-of-2]": "passed",
    "test_tiers[basic-1-of-2]": "passed",
    "test_tiers[basic-2-of-2]": "passed",
}

OTHER_FLAKY = ("-p", "no:pytest-retry")
"""pytest-retry has a marker `flaky` as well, and would run the test again, too."""

NEEDS_EVIDENCE = False


def run(suite, *arguments):
    suite.configure_asyncio(timeout_method="signal", asyncio_mode="strict")
    suite.write(test_suite=SUITE)
    # pytest-asyncio 0.23 and anyio leave each other's loops unclosed, with us and without.
    warnings = ("-W", "error", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")
    files = ("--junit-xml=report/junit.xml", "--episode-report-dir=report", "--cov=test_suite")
    files += ("-p", "opting_out")
    return suite.run_module("pytest", *warnings, *files, *arguments, autoload=True)


def test_every_plugin_here_is_found_by_pytest_itself(suite):
    ran = run(suite)
    ours = {"ci-agent-eval"}
    named = {
        name.removeprefix("pytest-")
        for name in ours | {e.dist.name for e in entry_points(group="pytest11")}
    }
    (line,) = (line for line in ran.output.splitlines() if line.startswith("plugins: "))
    shown = {plugin.rpartition("-")[0] for plugin in line.removeprefix("plugins: ").split(", ")}
    assert shown == named
    assert len(named) >= 9


def test_each_episode_ends_as_with_its_own_plugin_alone_and_on_workers_in_any_order(suite):
    alone = run(suite, *OTHER_FLAKY, "-p", "no:randomly")
    assert alone.status == 1, alone.output
    assert alone.outcomes == OUTCOMES
    assert len(alone.episodes) == len(OUTCOMES) + 1  # the attempt that was rerun
    # A property is one episode, which fails with its smallest example.
    (broken,) = (e for e in alone.episodes if e["nodeid"].endswith("::test_broken_property"))
    assert [a["name"] for a in broken["assertions"]] == ["assert number < 10"]
    assert "number=10" in alone.output
    ran = run(suite, *OTHER_FLAKY, "-n4", "--randomly-seed=5")
    assert ran.status == 1, ran.output
    assert ran.results == alone.results
