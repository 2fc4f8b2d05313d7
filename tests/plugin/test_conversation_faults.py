"""What goes wrong in a conversation is said, and nothing of it is lost."""

from __future__ import annotations

import signal

import pytest

AGENTS = """
import asyncio
import pytest
from ci_agent_eval import conversation

log = []

class Echo:
    def respond(self, message):
        return f"you said {message}"

class AsyncEcho:
    async def respond(self, message):
        if message == "hang":
            await asyncio.sleep(60)
        await asyncio.sleep(0)
        return f"you said {message}"

    async def aclose(self):
        await asyncio.sleep(0)
        log.append("closed")
"""


@pytest.fixture
def write(suite):
    def write(tests):
        suite.write(AGENTS + tests)
        return suite

    return write


def outcomes(ran):
    return {name: e.outcome for name, e in ran.episodes.items()}


class TestNotAwaited:
    def test_a_message_that_nobody_awaits_is_no_pass(self, write):
        ran = write("""
@conversation("forgets", AsyncEcho)
async def test_forgets(agent):
    agent.send("hello")
""").run("-W", "error")
        ran.result.assert_outcomes(failed=1)
        assert outcomes(ran) == {"test_forgets": "error"}
        assert "agent.send('hello') was not awaited" in ran.episodes["test_forgets"].reason

    def test_it_is_told_beside_what_failed_because_of_it(self, write):
        ran = write("""
@conversation("forgets", AsyncEcho)
async def test_forgets(agent):
    reply = agent.send("hello")
    assert "hello" in str(reply)
""").run("-W", "error")
        ran.result.assert_outcomes(failed=1)
        ran.result.stdout.fnmatch_lines(["E*agent.send('hello') was not awaited, so nothing*"])

    def test_a_message_still_under_way_at_the_end_is_no_pass(self, write):
        ran = write("""
@conversation("leaves", AsyncEcho)
async def test_leaves(agent):
    task = asyncio.ensure_future(agent.send("hang"))
    log.append(task)
    await asyncio.sleep(0)
""").run()
        ran.result.assert_outcomes(failed=1)
        assert "the test ended before 'hang' was answered" in ran.episodes["test_leaves"].reason

    def test_one_message_at_a_time(self, write):
        ran = write("""
@conversation("gathers", AsyncEcho)
async def test_gathers(agent):
    with pytest.raises(Exception, match="'a' is still being answered; await it first"):
        await asyncio.gather(agent.send("a"), agent.send("b"))
    await asyncio.sleep(0.01)
    assert await agent.send("c") == "you said c"

@conversation("a task", AsyncEcho)
async def test_task(agent):
    assert await asyncio.create_task(agent.send("c")) == "you said c"
""").run("-W", "error")
        ran.result.assert_outcomes(passed=2)

    def test_an_async_reset_is_finished_before_anything_is_observed(self, write):
        ran = write("""
class Slow(AsyncEcho):
    state = "old"

    async def reset(self):
        await asyncio.sleep(0)
        self.state = "new"

@conversation("looks", Slow)
async def test_looks(agent):
    await agent.send("a")
    agent.reset()
    assert agent.conversation.messages == ()
    with pytest.raises(Exception, match="write `await agent.reset"):
        agent.state
    await agent.send("b")
    assert agent.state == "new"

@conversation("ends", Slow)
async def test_ends(agent):
    agent.reset()
    log.append(agent.wrapped)

def test_it_was_reset_at_the_end():
    assert log[-2].state == "new"
""").run("-W", "error")
        ran.result.assert_outcomes(passed=3)


class TestCleanUp:
    def test_what_it_raises_is_the_episode_s_error_even_as_an_assertion(self, write):
        ran = write("""
class Leaks(Echo):
    def close(self):
        assert not "a connection is open"

@conversation("leaks", Leaks)
def test_leaks(agent):
    agent.send("a")

async def generated():
    yield Echo()
    raise OSError("the server is gone")

@conversation("late", generated)
async def test_late(agent):
    await agent.send("a")
    assert 1 == 2
""").run()
        ran.result.assert_outcomes(passed=1, failed=1, errors=2)
        assert outcomes(ran) == {"test_leaks": "error", "test_late": "failed"}
        assert "in teardown: AssertionError" in ran.episodes["test_leaks"].reason
        reason = ran.episodes["test_late"].reason
        assert reason.startswith("assert 1 == 2; then in teardown: OSError: the server is gone")

    def test_a_reset_cleans_the_old_agent_up_and_goes_on_if_that_fails(self, write):
        ran = write("""
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
""").run()
        ran.result.assert_outcomes(passed=1, errors=1)
        ran.result.stdout.fnmatch_lines(["*agent 1 leaks*"])
        ran.result.stdout.fnmatch_lines(["*agent 2 leaks*"])
        assert len(ran.episodes["test_two"].trajectory.agent_turns) == 2

    def test_an_agent_that_is_none_is_cleaned_up_too(self, write):
        ran = write("""
class NoAgent:
    def close(self):
        log.append("closed")

@conversation("none", NoAgent)
def test_none(agent): pass

def test_log():
    assert log == ["closed"]
""").run()
        ran.result.assert_outcomes(passed=1, failed=1)

    def test_what_needs_arguments_is_no_clean_up(self, write):
        write("""
class Broker(Echo):
    def close(self, position):
        raise AssertionError("sold")

@conversation("broker", Broker)
def test_broker(agent):
    agent.send("hello")
""").run().result.assert_outcomes(passed=1)

    def test_a_skip_and_a_failure_clean_up(self, write):
        ran = write("""
@conversation("skips", AsyncEcho)
async def test_skips(agent):
    pytest.skip("not today")

@conversation("fails", AsyncEcho)
def test_fails(agent):
    agent.send("x")
    pytest.fail("no")

def test_log():
    assert log == ["closed"] * 2
""").run()
        ran.result.assert_outcomes(passed=1, skipped=1, failed=1)

    def test_a_timeout_cleans_up_and_keeps_the_turns(self, write):
        ran = write("""
@pytest.mark.timeout(1)
@conversation("hangs", AsyncEcho)
async def test_hangs(agent):
    await agent.send("a")
    await agent.send("hang")

@pytest.mark.timeout(1)
@conversation("hangs in a plain test", AsyncEcho)
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

    def test_ctrl_c_cleans_up_and_says_what_that_raised(self, write):
        ran = write("""
import os, signal

class Leaks(AsyncEcho):
    async def respond(self, message):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    async def aclose(self):
        await asyncio.sleep(0)
        raise OSError("the server is gone")

@conversation("interrupted", Leaks)
async def test_it(agent):
    await agent.send("a")
""").run_apart()
        assert ran.result.ret == pytest.ExitCode.INTERRUPTED
        ran.result.stdout.fnmatch_lines(["*test_it: cleaning up the agent failed: OSError: the*"])
        (episode,) = ran.results.episodes
        assert episode.outcome == "error"
        assert episode.trajectory.turns[0].content == "a"
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


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
@pytest.fixture(params=["small", "large"])
def size(request):
    return request.param

@pytest.fixture
def agent():
    return "the fixture of this name"

def create(model, size, agent, tier="free"):
    echo = Echo()
    echo.made_of = (model, size, agent, tier)
    return echo

@pytest.mark.parametrize("model", ["m1"])
@conversation("made", create)
def test_made(agent, size):
    assert agent.made_of == ("m1", size, "the fixture of this name", "free")
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
        assert "the factory made the class Echo, which is no agent" in reasons["test_class"]


@pytest.mark.parametrize(
    ("decorated", "said"),
    [
        ("@conversation\ndef test_x(agent): pass", "needs a name and a factory"),
        ('@conversation("x")\ndef test_x(agent): pass', "give a factory as well"),
        ('@conversation("x", Echo)\ndef test_x(agent): yield', "contains `yield`"),
        ('@conversation("x", Echo)\nasync def test_x(agent): yield', "contains `yield`"),
        ('@conversation("x", Echo)\ndef test_x(agent, /): pass', "takes no parameter `agent`"),
        (
            'class TestX:\n  @conversation("x", Echo)\n  @staticmethod\n  def test_x(agent): pass',
            "put it below @staticmethod",
        ),
    ],
)
def test_what_is_no_conversation_is_said_at_collection(write, decorated, said):
    ran = write(decorated).run()
    ran.result.assert_outcomes(errors=1)
    ran.result.stdout.fnmatch_lines([f"E*InputError*{said}*"])


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
        assert tmp_path.exists() and unset is None

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
    ran = suite.run_apart()
    ran.result.assert_outcomes(passed=3)
    assert [e.scenario_id for e in ran.results.episodes] == ["above", "below"]


def test_what_a_test_holds_is_to_be_looked_at(write):
    ran = write("""
class Busy(Echo):
    conversation = "its own"

    @property
    def broken(self):
        return self.missing_inside

@conversation("looks", Busy)
def test_looks(agent):
    with pytest.raises(AttributeError, match="agent.wrapped.canvas = "):
        agent.canvas = 1
    with pytest.raises(AttributeError, match="missing_inside"):
        agent.broken
    with pytest.raises(Exception, match="message as a text, not 42"):
        agent.send(42)
    assert agent.wrapped.conversation == "its own"
    assert "respond" in dir(agent) and "send" in dir(agent)
    assert repr(agent) == "<agent under test: Busy>"
    before = agent.conversation.messages
    reply = agent.send("hello")
    assert before == () and reply == "you said hello" and reply != "hello"
    assert reply == agent.conversation.last and {reply: 1}["you said hello"] == 1
    with pytest.raises(AttributeError):
        reply.content = "other"
""").run("-W", "error")
    ran.result.assert_outcomes(passed=1)


def test_hostile_text_is_data(write):
    ran = write("""
HOSTILE = "\\x1b[31m::error::@everyone <script>\\ud800 | `x`"

class Hostile(Echo):
    def respond(self, message):
        call = {"name": HOSTILE, "arguments": {HOSTILE: float("nan")}, "error": HOSTILE}
        return {"text": HOSTILE + message, "tool_calls": [call]}

@conversation("hostile " + HOSTILE, Hostile)
def test_hostile(agent):
    reply = agent.send(HOSTILE)
    assert "<script>" in reply and "\\ud800" not in reply
    raise RuntimeError(HOSTILE)
""").run("-W", "error")
    ran.result.assert_outcomes(failed=1)
    episode = ran.episodes["test_hostile"]
    assert "<script>" in episode.trajectory.turns[1].content
    assert "\x1b" not in "".join(ran.result.outlines[-12:])


def test_what_is_not_measured_is_no_pass_within_a_hard_budget(write):
    ran = write("""
class Priced(Echo):
    def respond(self, message):
        return {"text": "x", "usage": {"input": 3, "output": 1}, "cost_usd": 0.5}

@pytest.mark.episode(budgets={"token_usage": 100, "cost_usd": 1})
@conversation("silent", Echo)
def test_silent(agent):
    agent.send("a")

@pytest.mark.episode(budgets={"token_usage": 100, "cost_usd": 1})
@conversation("priced", Priced)
def test_priced(agent):
    agent.send("a")
    agent.reset()
    agent.send("b")
    agent.send("c")
""").run()
    ran.result.assert_outcomes(failed=2)
    silent, priced = ran.episodes["test_silent"], ran.episodes["test_priced"]
    assert [(v.budget, v.observed) for v in silent.violations] == [
        ("token_usage", None),
        ("cost_usd", None),
    ]
    assert [(v.budget, v.observed) for v in priced.violations] == [("cost_usd", 1.5)]


def test_a_plain_agent_may_run_a_loop_of_its_own_in_a_plain_test(write):
    ran = write("""
class Blocking(Echo):
    def respond(self, message):
        return asyncio.run(self.think(message))

    async def think(self, message):
        return message.upper()

@conversation("blocking", Blocking)
def test_blocking(agent):
    assert agent.send("a") == "A"
""").run("-W", "error")
    ran.result.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("stop_reason", "outcome"),
    [("max_turns", "failed"), ("cost_limit", "failed"), ("model_error", "error")],
)
def test_a_run_that_stops_counts_as_the_engine_counts_it(suite, stop_reason, outcome):
    suite.write(f"""
        from ci_agent_eval import conversation

        def stopping(message):
            return {{"text": "", "stop_reason": "{stop_reason}", "error": "it was enough"}}

        @conversation("Stops", lambda: stopping)
        def test_stops(agent):
            agent.send("go on")
    """)
    ran = suite.run()
    ran.result.assert_outcomes(failed=1)
    episode = ran.episodes["test_stops"]
    assert episode.outcome == outcome
    assert f"{stop_reason}: it was enough" in episode.reason
