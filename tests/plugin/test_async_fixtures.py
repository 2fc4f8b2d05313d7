"""Tests that are asynchronous, with asynchronous fixtures, or with agents as parameters."""

from __future__ import annotations

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step

# `async def` episodes run without a further plugin; other plugins keep what is theirs.


def test_tests_of_others_are_left_to_them_and_episodes_need_no_pytest_asyncio(suite):
    # No plugin is here to run those of others, so pytest itself says that nobody did.
    suite.write("""
        import pytest

        async def test_plain(): pass

        @pytest.mark.anyio
        async def test_anyio(episode): pass

        @pytest.mark.trio
        async def test_trio(episode): pass

        @pytest.mark.asyncio
        @pytest.mark.episode(evidence="none")
        async def test_asyncio(episode): pass
    """)
    ran = suite.run("-W", "ignore", "-p", "no:anyio")
    ran.result.assert_outcomes(failed=3, passed=1)
    said = "async def functions are not natively supported"
    assert ran.result.stdout.str().count(said) >= 3
    assert {name: e.outcome for name, e in ran.episodes.items()} == {
        "test_anyio": "failed",
        "test_trio": "failed",
        "test_asyncio": "passed",
    }


# Async fixtures run on the loop of the episodes, and are torn down on it however the run ends.


HEAD = """
import asyncio
import contextvars
import pytest

def tell(what):
    with open("told.txt", "a") as file: print(what, file=file)

who = contextvars.ContextVar("who", default="nobody")

@pytest.fixture(scope="module")
async def desk():
    mine = asyncio.get_running_loop()
    yield mine
    tell(f"desk down {mine is asyncio.get_running_loop()}")

@pytest.fixture
async def lamp(desk):
    async with asyncio.TaskGroup() as group:
        waits = group.create_task(asyncio.Event().wait())
        yield desk
        waits.cancel()
    tell(f"lamp down {desk is asyncio.get_running_loop()}")
"""

NEEDS_EVIDENCE = False


@pytest.fixture(params=[1, 4], ids=["one-by-one", "concurrent"])
def concurrency(request):
    return request.param


@pytest.fixture
def run(suite, concurrency):
    """Run tests below the head, one by one and side by side."""

    def run_with(tests, *arguments, run_suite=suite.run):
        suite.write(HEAD + tests)
        at_once = f"--episode-concurrency={concurrency}"
        return run_suite("-p", "no:anyio", at_once, "-W", "error", *arguments)

    return run_with


def downs(ran):
    """Return what was torn down, and whether on the right loop, in order."""
    return (ran.folder.parent / "told.txt").read_text().splitlines()


def test_they_are_torn_down_after_a_failure(run):
    ran = run("""
async def test_fails(episode, lamp): assert 1 == 2
async def test_errors(episode, lamp): raise ConnectionError
async def test_passes(episode, lamp): pass
""")
    ran.result.assert_outcomes(failed=2, passed=1)
    assert downs(ran) == ["lamp down True"] * 3 + ["desk down True"]


def test_they_are_torn_down_after_ctrl_c(run, suite, concurrency):
    where = "test" if concurrency == 1 else "fixture"
    ran = run(
        f"""
import os, signal

async def interrupt(place):
    if place == {where!r}:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()

@pytest.fixture
async def late(lamp):
    try:
        await interrupt("fixture")
        yield
    finally:
        tell(f"late down {{lamp is asyncio.get_running_loop()}}")

async def test_one(episode, late): await interrupt("test")
""",
        run_suite=suite.run_apart,
    )
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    assert downs(ran) == ["late down True", "lamp down True", "desk down True"]
    assert "interrupted: KeyboardInterrupt" in ran.journal[-1].episode.reason


def test_variables_are_seen_until_teardown_and_what_breaks_is_the_episode_s_error(run):
    ran = run("""
@pytest.fixture
async def unset():
    raise OSError("no desk")
    yield

@pytest.fixture
async def skips(): pytest.skip("not today")

@pytest.fixture
async def leaky():
    yield
    raise OSError("cannot clean up")

@pytest.fixture
async def never():
    if False: yield

@pytest.fixture
async def twice():
    yield 1
    yield 2

async def test_unset(episode, unset): pass
def test_unset_too(episode, unset): pass
async def test_skips(episode, skips): pass
async def test_leaky(episode, leaky): pass
async def test_never(episode, never): pass
async def test_twice(episode, twice): pass

@pytest.fixture
async def signs_in():
    who.set("me")

@pytest.fixture
async def signs_over(signs_in):
    token = who.set(who.get() + " too")
    yield
    assert who.get() == "me too"
    who.reset(token)

@pytest.fixture
def plain(signs_over):
    assert who.get() == "me too"
    yield
    assert who.get() == "me too"

async def test_async(episode, plain): assert who.get() == "me too"
async def test_others(episode): assert who.get() == "nobody"
def test_sync(episode, plain): assert who.get() == "me too"
def test_sync_others(episode): assert who.get() == "nobody"

async def test_late(episode, request):
    request.getfixturevalue("desk")

def test_late_and_plain(episode, request):
    assert request.getfixturevalue("desk")
""")
    outcomes = {name: e.outcome for name, e in ran.episodes.items()}
    passed = {"test_async", "test_others", "test_sync", "test_sync_others", "test_late_and_plain"}
    assert {name for name, outcome in outcomes.items() if outcome == "passed"} == passed
    assert ran.episodes["test_late"].outcome == "error"
    reasons = {name: e.reason or "" for name, e in ran.episodes.items()}
    assert reasons["test_unset"].startswith("OSError: no desk (test_suite.py:")
    assert reasons["test_unset_too"].startswith("OSError: no desk (test_suite.py:")
    assert reasons["test_skips"] == "not today"
    assert reasons["test_leaky"].startswith("in teardown: OSError: cannot clean up (test_suite.py:")
    assert reasons["test_never"].startswith("ValueError: never did not yield a value")
    assert reasons["test_twice"] == "in teardown: Failed: twice: the fixture yields twice"
    assert (
        "test_suite.py::test_late: the async fixture 'desk' was asked for while an event loop "
        "runs; name it as a parameter of the test or of a plain fixture"
    ) in ran.episodes["test_late"].reason


def test_tests_that_are_no_episodes_may_have_them_too(pytester):
    pytester.makepyfile(
        HEAD
        + """
def test_plain(lamp, desk): assert lamp is desk

class TestDesk:
    @pytest.fixture(autouse=True)
    async def mine(self): self.number = 1
    def test_method(self): assert self.number == 1
"""
    )
    result = pytester.runpytest_subprocess("-W", "error")
    result.assert_outcomes(passed=2)


def test_a_conftest_that_runs_them_goes_on_to(pytester):
    pytester.makeconftest("""
        import asyncio, inspect, pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_fixture_setup(fixturedef, request):
            if inspect.iscoroutinefunction(fixturedef.func):
                value = asyncio.run(fixturedef.func())
                fixturedef.cached_result = (value, fixturedef.cache_key(request), None)
                return value
    """)
    pytester.makepyfile("""
        import asyncio, pytest

        @pytest.fixture
        async def desk(): return asyncio.get_running_loop()

        def test_plain(desk): assert desk.is_closed()
        @pytest.mark.episode(evidence="none")
        async def test_episode(episode, desk): assert desk is asyncio.get_running_loop()
    """)
    pytester.runpytest_subprocess().assert_outcomes(passed=2)


def test_strict_evaluations_may_be_plain_async_tests(suite):
    suite.write("")
    suite.pytester.makepyfile(
        chat_eval=HEAD
        + """
async def test_plain(lamp): assert lamp is asyncio.get_running_loop()
async def test_fails(lamp):
    await asyncio.sleep(0)
    assert 1 == 2
"""
    )
    ran = suite.run("--eval-strict", "chat_eval.py", "-W", "error")
    ran.result.assert_outcomes(passed=1, failed=1)
    measured = suite.run("chat_eval.py", "-W", "error")
    measured.result.assert_outcomes(passed=2)


ENGINE = """
from ci_agent_eval.engine import Agent, Provider

agent = Agent(provider=Provider("openai:gpt-5-mini", base_url={url!r}))

@pytest.fixture
async def answer(aitest_run):
    return await aitest_run(agent, "Hello")

async def ask(aitest_run, answer, lamp):
    result = await aitest_run(agent, "Hello")
    assert result.final_response == answer.final_response == "Hi"
    assert lamp is asyncio.get_running_loop()

async def test_unmarked(episode, aitest_run, answer, lamp): await ask(aitest_run, answer, lamp)

@pytest.mark.asyncio
async def test_asyncio(episode, aitest_run, answer, lamp): await ask(aitest_run, answer, lamp)

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_anyio(episode, aitest_run, answer, lamp): await ask(aitest_run, answer, lamp)
"""


def test_agents_of_the_engine_run_whoever_claims_the_test(suite):
    with ModelServer([Step(text="Hi"), Step(text="Hi")]) as server:
        suite.write(HEAD + ENGINE.format(url=server.base_url))
        ran = suite.run("-W", "ignore::pytest.PytestUnknownMarkWarning")
    ran.result.assert_outcomes(passed=3)


def test_on_another_backend_of_anyio_the_engine_says_what_it_needs(suite):
    suite.write("""
        import pytest
        from ci_agent_eval.engine import Agent, Provider

        agent = Agent(provider=Provider("openai:gpt-5-mini", base_url="http://127.0.0.1:9"))

        @pytest.fixture
        def anyio_backend(): return "asyncio", {"debug": True}

        @pytest.fixture
        async def desk(): return "desk"

        @pytest.mark.anyio
        async def test_one(episode, desk): assert desk == "desk"

        @pytest.mark.anyio
        async def test_agent(aitest_run): await aitest_run(agent, "Hello")
    """)
    ran = suite.run()
    ran.result.assert_outcomes(passed=1, failed=1)
    assert "not in a thread or `asyncio.run`, and not on trio" in ran.episodes["test_agent"].reason


# Agents as parameters: each is an episode of one scenario, with the agent's name on its marker.


TESTS = """
import pytest

def agents(**values):
    return [
        pytest.param(value, id=name, marks=pytest.mark.episode(agent=name))
        for name, value in values.items()
    ]

@pytest.mark.parametrize("prompt", agents(concise="Be brief.", detailed="Explain."))
@pytest.mark.episode(scenario_id="balance", evidence="none")
def test_balance(episode, prompt):
    with episode.turn(f"{prompt} What's my balance?") as turn:
        turn.reply("$5")
    episode.check("brief", prompt == "Be brief.")

@pytest.mark.parametrize("turns", agents(short=1, long=2))
@pytest.mark.episode(scenario_id="greeting", evidence="none", budgets={"max_turns": 1})
def test_greeting(episode, turns):
    for _ in range(turns):
        with episode.turn("hi") as turn:
            turn.reply("hi")

@pytest.mark.parametrize("works", agents(good=True, bad=False))
@pytest.mark.episode(scenario_id="x", iterations="auto:2-6", min_pass_rate=1.0, evidence="none")
def test_adaptive(episode, works):
    episode.check("works", works)
"""


def test_each_agent_is_an_episode_of_the_scenario_with_its_own_verdict(suite):
    suite.write(TESTS)
    ran = suite.run("--aitest-iterations=2").results.episodes
    adaptive = [e.agent for e in ran if e.scenario_id == "x"]
    assert {agent: adaptive.count(agent) for agent in adaptive} == {"good": 6, "bad": 2}
    episodes = [e for e in ran if e.scenario_id != "x"]
    outcomes = sorted((e.scenario_id, e.agent, e.iteration, e.outcome) for e in episodes)
    assert outcomes == [
        ("balance", "concise", 1, "passed"),
        ("balance", "concise", 2, "passed"),
        ("balance", "detailed", 1, "failed"),
        ("balance", "detailed", 2, "failed"),
        ("greeting", "long", 1, "passed"),
        ("greeting", "long", 2, "passed"),
        ("greeting", "short", 1, "passed"),
        ("greeting", "short", 2, "passed"),
    ]
    over = {e.agent: len(e.violations) for e in episodes if e.scenario_id == "greeting"}
    assert over == {"short": 0, "long": 1}


ENGINE_PARAMETRIZED_AGENTS = """
import pytest
from dataclasses import replace
from ci_agent_eval.engine import Agent, Provider

CONCISE = Agent(Provider("openai:gpt-5-mini", base_url={url!r}), system_prompt="Be brief.")
DETAILED = replace(CONCISE, system_prompt="Explain.")

@pytest.mark.parametrize("case", [pytest.param(1, marks=pytest.mark.episode(scenario_id="a"))])
@pytest.mark.parametrize("agent", [
    pytest.param(CONCISE, id="concise", marks=pytest.mark.episode(agent="concise")),
    pytest.param(DETAILED, id="detailed", marks=pytest.mark.episode(agent="detailed")),
])
@pytest.mark.episode(scenario_id="balance")
async def test_balance(aitest_run, agent, case):
    result = await aitest_run(agent, "What's my balance?")
    assert result.success
"""


def test_two_prompts_of_one_model_have_cassettes_of_their_own(suite):
    with ModelServer(["$5", "You have $5."]) as server:
        suite.write(ENGINE_PARAMETRIZED_AGENTS.format(url=server.base_url))
        recorded = suite.run("-p", "no:randomly", "--cassette=record")
    recorded.result.assert_outcomes(passed=2)
    assert [e.agent for e in recorded.results.episodes] == ["concise", "detailed"]
    assert len(list((suite.pytester.path / "cassettes").iterdir())) == 2
    replayed = suite.run("-p", "no:randomly", "--cassette=replay")
    replayed.result.assert_outcomes(passed=2)
    assert [e.agent for e in replayed.results.episodes] == ["concise", "detailed"]
