"""Forms of conversations, their factories, and what is cleaned up."""

from __future__ import annotations

import signal

import pytest

from tests.plugin.conversations.rig import AGENTS, outcomes
from tests.samples import run_sample

# Which functions may be tests of a conversation.


def test_what_is_no_conversation_is_said_at_collection(write):
    cases = [
        ("@conversation\ndef test_x(agent): pass", "needs a name and a factory"),
        ('@conversation("x")\ndef test_x(agent): pass', "pass a factory: a function or class"),
        ('@conversation("x", Echo())\ndef test_x(agent): pass', "give a factory"),
        ('@conversation("x", 42)\ndef test_x(agent): pass', "not a int"),
        ('@conversation("x", lambda log, /: 1)\ndef test_x(agent): pass', "let them have names"),
        ('@conversation("x", Echo)\ndef test_x(agent): yield', "contains `yield`"),
        ('@conversation("x", Echo)\nasync def test_x(agent): yield', "contains `yield`"),
        ('@conversation("x", Echo)\ndef test_x(agent, /): pass', "takes no parameter `agent`"),
        (
            'class TestX:\n  @conversation("x", Echo)\n  @staticmethod\n  def test_x(agent): pass',
            "put it below @staticmethod",
        ),
    ]
    ran = write(*[decorated for decorated, _ in cases]).run()
    ran.result.assert_outcomes(errors=len(cases))
    ran.result.stdout.fnmatch_lines([f"E*InputError*{said}*" for _, said in cases])


def test_forms_of_a_test_function(write):
    ran = write("""
from unittest import mock
from ci_agent_eval.errors import InputError

class TestForms:
    @staticmethod
    @conversation("static", Echo)
    def test_static(agent):
        assert agent.send("a") == "you said a"

    @conversation("keyword", Echo)
    def test_keyword(self, *, agent, tmp_path, unset=None):
        assert agent.send("a") and tmp_path.exists() and unset is None

    @conversation("patched", Echo)
    @mock.patch("os.getcwd")
    def test_patched(self, getcwd, agent):
        assert isinstance(getcwd, mock.Mock)
        assert agent.send("a")

def test_nobody_else_calls_it():
    with pytest.raises(InputError, match="let pytest run it"):
        TestForms.test_static()
""").run("-W", "error")
    ran.result.assert_outcomes(passed=4)


def test_a_property_may_stand_above_or_below(suite):
    suite.write(
        AGENTS
        + """
from hypothesis import given, settings, strategies as st

few = settings(max_examples=5, deadline=None, database=None)
made = []

class Counted(Echo):
    def __init__(self):
        made.append(self)

@few
@given(text=st.text(), number=st.integers())
@conversation("above", Counted)
def test_above(agent, text, number):
    assert agent.send(text) == f"you said {text}" and isinstance(number, int)
    assert len(agent.conversation.messages) == 2

@conversation("below", Echo)
@few
@given(text=st.just("x"))
def test_below(agent, text):
    assert agent.send(text) == "you said x"

def test_each_example_has_an_agent_of_its_own():
    assert len(made) == 5
"""
    )
    ran = suite.run()
    ran.result.assert_outcomes(passed=3)
    assert [e.scenario_id for e in ran.results.episodes] == ["above", "below"]


# What makes an agent, and where its arguments come from.


class TestFactories:
    def test_what_is_opened_in_a_plain_test_is_closed_by_the_same_task(self, write):
        ran = write("""
import anyio

class Grouped(AsyncEcho):
    async def __aenter__(self):
        self.group = anyio.create_task_group()
        await self.group.__aenter__()
        return self

    async def __aexit__(self, *how):
        await self.group.__aexit__(*how)
        log.append("left")

async def generated():
    async with anyio.create_task_group():
        yield AsyncEcho()
        log.append("left")

@conversation("manager", Grouped)
def test_manager(agent):
    assert agent.send("a") == "you said a"
    assert agent.send("b") == "you said b"

@conversation("generator", generated)
def test_generator(agent):
    assert agent.send("a") == "you said a"
    agent.reset()
    assert agent.send("a") == "you said a"

def test_log():
    assert log == ["left"] * 3
""").run("-W", "error")
        ran.result.assert_outcomes(passed=3)

    def test_their_parameters_are_fixtures_and_parameters_of_the_test(self, write):
        ran = write("""
from functools import partial

@pytest.fixture(params=["small", "large"])
def size(request):
    return request.param

@pytest.fixture
def agent():
    return "the fixture of this name"

def create(model, bound, size, agent, tier="free", *rest, **more):
    echo = Echo()
    echo.made_of = (model, bound, size, agent, tier, rest, more)
    return echo

@pytest.mark.parametrize("model", ["m1"])
@conversation("made", partial(create, bound=2))
def test_made(agent, size):
    assert agent.send("a")
    assert agent.made_of == ("m1", 2, size, "the fixture of this name", "free", (), {})
""").run()
        ran.result.assert_outcomes(passed=2)
        scenarios = sorted(e.scenario_id for e in ran.results.episodes)
        assert scenarios == ["made[large-m1]", "made[small-m1]"]

    def test_one_that_asserts_or_yields_nothing_is_an_error(self, write):
        ran = write("""
def asserts():
    assert 1 == 2
    yield Echo()

def nothing():
    if False:
        yield

def twice():
    yield Echo()
    yield Echo()

@conversation("asserts", asserts)
def test_asserts(agent): pass

@conversation("nothing", nothing)
async def test_nothing(agent): pass

@conversation("twice", twice)
def test_twice(agent): pass

@conversation("a class", lambda: Echo)
def test_class(agent): pass
""").run()
        assert set(outcomes(ran).values()) == {"error"}
        reasons = {name: e.reason for name, e in ran.episodes.items()}
        assert "the factory failed: AssertionError: assert 1 == 2" in reasons["test_asserts"]
        assert "yields no agent" in reasons["test_nothing"]
        assert "yields more than one agent" in reasons["test_twice"]
        assert "the factory made the class Echo, which is not an agent" in reasons["test_class"]


# Agents are cleaned up however their test ends.


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
