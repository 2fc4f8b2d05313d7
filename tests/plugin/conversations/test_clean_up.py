"""Agents are cleaned up however their test ends."""

from __future__ import annotations

import signal

import pytest

from tests.plugin.conversations.rig import outcomes
from tests.samples import run_sample

RAISES = """
class Leaks(Echo):
    def close(self):
        assert not "a connection is open"

@conversation("leaks", Leaks)
def test_leaks(agent):
    assert agent.send("a")

async def generated():
    yield Echo()
    raise OSError("the server is gone")

@conversation("late", generated)
async def test_late(agent):
    await agent.send("a")
    assert 1 == 2
"""

RESETS = """
class Leaks(Echo):
    def close(self):
        log.append(self)
        raise OSError(f"agent {len(log)} leaks")

@conversation("two", Leaks)
def test_two(agent):
    agent.send("a")
    agent.reset()
    assert agent.send("b") == "you said b"
    assert len(agent.conversation.messages) == 2
"""

NO_AGENT = """
class NoAgent:
    def close(self):
        log.append("closed")

@conversation("none", NoAgent)
def test_none(agent): pass

def test_log():
    assert log == ["closed"]
"""

NEEDS_ARGUMENTS = """
class Broker(Echo):
    def close(self, position):
        raise AssertionError("sold")

@conversation("broker", Broker)
def test_broker(agent):
    assert agent.send("hello")
"""

SKIPS_AND_FAILS = """
@conversation("skips", AsyncEcho)
async def test_skips(agent):
    pytest.skip("not today")

@conversation("fails", AsyncEcho)
def test_fails(agent):
    agent.send("x")
    pytest.fail("no")

def test_log():
    assert log == ["closed"] * 2
"""


class TestCleanUp:
    def test_it_is_done_after_failures_skips_resets_and_for_what_is_no_agent(self, write):
        ran = write(RAISES, RESETS, NO_AGENT, NEEDS_ARGUMENTS, SKIPS_AND_FAILS).run()
        ran.result.assert_outcomes(passed=5, failed=3, errors=3, skipped=1)
        found = outcomes(ran)
        assert (found["test_leaks"], found["test_late"]) == ("error", "failed")
        assert "in teardown: AssertionError" in ran.episodes["test_leaks"].reason
        reason = ran.episodes["test_late"].reason
        assert reason.startswith("assert 1 == 2; then in teardown: OSError: the server is gone")
        ran.result.stdout.fnmatch_lines(["*agent 1 leaks*"])
        ran.result.stdout.fnmatch_lines(["*agent 2 leaks*"])
        assert len(ran.episodes["test_two"].trajectory.agent_turns) == 2

    def test_a_timeout_cleans_up_and_keeps_the_turns(self, write):
        ran = write("""
import signal

class Hangs(AsyncEcho):
    # Ends the timer of pytest-timeout when it hangs: no machine is too slow for what is before.

    async def respond(self, message):
        if message == "hang":
            signal.setitimer(signal.ITIMER_REAL, 0.001)
        return await super().respond(message)

@pytest.mark.timeout(100)
@conversation("hangs", Hangs)
async def test_hangs(agent):
    await agent.send("a")
    await agent.send("hang")

@pytest.mark.timeout(100)
@conversation("hangs in a plain test", Hangs)
def test_hangs_plainly(agent):
    agent.send("a")
    agent.send("hang")

@conversation("asyncio's own", AsyncEcho)
async def test_own(agent):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await agent.send("hang")
    assert await agent.send("b") == "you said b"

def test_log():
    assert log == ["closed"] * 3
""").run()
        ran.result.assert_outcomes(passed=2, failed=2)
        for name, raised in (("test_hangs", "CancelledError"), ("test_hangs_plainly", "Failed")):
            assert ran.episodes[name].outcome == "failed"
            *turns, broke = [t.content for t in ran.episodes[name].trajectory.turns]
            assert turns == ["a", "you said a", "hang"]
            assert broke.startswith(f"the agent raised {raised}")

    @pytest.mark.parametrize("has_terminal", run_sample([(True,), (False,)], {0}))
    def test_ctrl_c_cleans_up_and_says_what_that_raised(self, write, has_terminal):
        ran = write("""
import os, signal

class Leaks(AsyncEcho):
    async def respond(self, message):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

    async def aclose(self):
        await asyncio.sleep(0)
        raise OSError("the server is gone")

@conversation("interrupted", Leaks)
async def test_it(agent):
    await agent.send("a")
""").run_apart(*(() if has_terminal else ("-p", "no:terminal")))
        assert ran.result.ret == pytest.ExitCode.INTERRUPTED
        failed = "test_it: cleaning up the agent failed: OSError: the server is gone"
        assert (failed in ran.result.stdout.str()) is has_terminal
        (episode,) = ran.results.episodes
        assert episode.outcome == "error"
        assert episode.trajectory.turns[0].content == "a"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
