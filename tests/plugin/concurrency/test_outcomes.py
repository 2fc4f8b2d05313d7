"""Evaluations, conversations, simulations and the rest: the same as one by one."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from tests.plugin.conftest import SCRIPTED_CLOCK

FIXTURES = """
import asyncio
import warnings
import pytest
from meeting import let_others_work

@pytest.fixture
def broken(): raise OSError("no desk")

@pytest.fixture(scope="module")
def broken_bank():
    raise OSError("no bank")

@pytest.fixture
def jams():
    yield
    raise OSError("jammed")

@pytest.fixture
def fails_late():
    yield
    assert 1 == 2

@pytest.fixture(scope="module")
def jams_at_last():
    yield
    raise OSError("jammed at last")
"""

CASES = {
    "setup": """
        async def test_a(episode): pass
        async def test_b(broken, episode): pass
        async def test_c(episode, broken): pass
        async def test_d(episode, broken_bank): pass
        async def test_e(broken_bank, episode): pass
        async def test_f(episode, nobody_knows): pass
        async def test_g(episode): pass
    """,
    "teardown": """
        async def test_a(episode, jams): pass
        async def test_b(episode, jams): assert False
        async def test_c(episode, jams_at_last): pass
        async def test_d(episode, fails_late): pass
        async def test_e(episode, jams_at_last): episode.check("x", False)
    """,
    "asserts": """
        async def test_a(episode):
            await let_others_work()
            assert {"a": [1, 2]} == {"a": [1, 3]}, "because"
        async def test_b(episode):
            print("before the checks")
            episode.check("polite", False, "it was not")
            warnings.warn("it was not polite")
            episode.check("kind", True)
            episode.check("quick", False, severity="warning")
        async def test_c(episode):
            episode.check("polite", False)
            pytest.skip("then gives up")
        async def test_d(episode): pytest.fail("no")
        async def test_e(episode): pytest.xfail("known")
        async def test_f(episode):
            with pytest.raises(ValueError): raise ValueError
        async def test_g(episode): raise ConnectionError("refused")
        @pytest.mark.xfail(raises=OSError)
        async def test_h(episode): raise OSError
        @pytest.mark.xfail(strict=True)
        async def test_i(episode): pass
        async def test_j(episode): return 1
        async def test_l(episode):
            async with asyncio.TaskGroup() as group:
                group.create_task(asyncio.sleep(0))
                group.create_task(let_others_work())
    """,
    "budgets": """
        @pytest.mark.episode(budgets={"tool_calls": 1, "max_turns": 0})
        async def test_a(episode):
            with episode.turn("Hello") as turn:
                turn.tool_call("a")
                await asyncio.sleep(0)
                turn.tool_call("b")
                turn.reply("Hi", tokens=7)
        @pytest.mark.episode(gate="advisory", min_pass_rate=0.5, iterations=3)
        async def test_c(episode): assert episode.iteration != 2
        @pytest.mark.episode
        async def test_d(): await asyncio.sleep(0)
    """,
    "conversation": """
        from ci_agent_eval import conversation

        class Agent:
            def __init__(self): self.heard = []
            async def respond(self, message):
                await asyncio.sleep(0)
                self.heard.append(message)
                return f"{message}, {len(self.heard)}"

        @conversation("Chat", Agent)
        @pytest.mark.parametrize("number", range(3))
        async def test_a(agent, number):
            assert await agent.send(f"one {number}") == f"one {number}, 1"
            await let_others_work()
            reply = await agent.send(f"two {number}")
            assert reply.text == f"two {number}, 2"

        @conversation("Again", Agent)
        async def test_b(agent):
            await agent.send("hello")
            assert agent.heard == []
    """,
    "simulation": """
        from ci_agent_eval import SimulatedUser, check, run_simulation, scenarios

        async def app(message, *, thread_id):
            await asyncio.sleep(0)
            return f"{message}!"

        @pytest.mark.parametrize("number", range(3))
        async def test_a(episode, number):
            user = SimulatedUser("a customer", fixed_responses=[f"a{number}", "b"])
            result = await run_simulation(app, user, max_turns=2)
            check(result.last_reply == "b!", f"number {number}")

        @pytest.mark.parametrize("number", range(3))
        async def test_b(simulation, number):
            user = SimulatedUser("a customer", fixed_responses=[f"a{number}", "b"])
            result = await simulation(app, user, max_turns=2)
            check(result.last_reply == "a!", f"the fixture's {number}")

        @scenarios("desk.yaml")
        async def test_c(scenario):
            await scenario.run(app)
    """,
    "bridge": """
        from ci_agent_eval import llm_episode, llm_unit

        @llm_unit()
        @pytest.mark.parametrize("input, expected_output", [("a", "b"), ("c", "d"), ("e", "f")])
        async def test_a(input, expected_output):
            await let_others_work()
            assert input != "c"

        @llm_unit
        async def test_b(episode): episode.check("kind", False)

        @llm_episode()
        @pytest.mark.parametrize("scenario_id", ["one", "two", "three"])
        async def test_c(scenario_id):
            await let_others_work()
            said = {"name": "polite", "passed": scenario_id != "two"}
            return {"scenario_id": scenario_id, "assertions": [said]}
    """,
}

EVALUATION = """
import asyncio
import pytest
from ci_agent_eval import check

async def test_measured(episode):
    await asyncio.sleep(0)
    assert 1 == 2
    await asyncio.sleep(0)
    assert "a" in "abc", "has it"
    check(False, "polite")
    assert await later() == 3

async def later():
    await asyncio.sleep(0)
    return 3

@pytest.mark.parametrize("number", range(4))
async def test_each(episode, number):
    await asyncio.sleep(0)
    check(number % 2 == 0, f"even {number}")
    assert number < 2

async def test_errors(episode): raise OSError("no")
async def test_nothing(episode): pass
def test_plain(): assert False
"""


DESK = """
scenarios:
  - {id: refund, persona: a customer, script: [hello, there], checks: {required_text: [hello]}}
  - {id: chat, persona: a customer, script: [bye], checks: {required_text: [nobody]}}
"""


def left(suite, concurrency, *arguments):
    ran = suite.run(f"--episode-concurrency={concurrency}", *arguments)
    lines = [re.sub(r"=+ | =+|[\d.]+s\b", "", line) for line in ran.result.outlines]
    wanted = [line for line in lines if not line.startswith(("note: ", "rootdir", "running"))]
    wanted = [re.sub("0x[0-9a-f]+", "0x", line) for line in wanted]
    # An experiment's name, which ends in its time.
    wanted = [line for line in wanted if not re.match("Test-Suite-", line)]
    junit = re.sub(r' time(stamp)?="[^"]*"|0x[0-9a-f]+', "", (ran.folder / "junit.xml").read_text())
    # The times of an experiment.
    results = re.sub(rb'"20\d\d-[^"]*\+00:00"', b'""', (ran.folder / "results.json").read_bytes())
    results = re.sub(rb'"Test-Suite-[^"]*"', b'""', results)
    return ran.result.ret, results, junit.splitlines(), wanted


def write_cases(suite, *names):
    """Write a file of tests for each case."""
    files = {f"test_{name}": FIXTURES + dedent(CASES[name]) for name in names}
    suite.pytester.makepyfile(**files)


def test_the_same_comes_out(suite):
    suite.pytester.makeconftest(SCRIPTED_CLOCK)
    (suite.pytester.path / "desk.yaml").write_text(DESK)
    write_cases(suite, *CASES)
    expected = left(suite, 1, "-v", "-rA")
    for case in CASES:
        assert f"test_{case}.py".encode() in expected[1]
    for concurrency in (2, 8):
        for part, other in zip(left(suite, concurrency, "-v", "-rA"), expected, strict=True):
            assert part == other


@pytest.mark.parametrize("option", ["--eval", "--eval-strict"])
def test_evaluations_are_measured_the_same(suite, option):
    suite.pytester.makeconftest(SCRIPTED_CLOCK)
    suite.pytester.makepyfile(chat_eval=EVALUATION, test_suite="async def test_a(episode): pass")
    expected = left(suite, 1, option, "--eval")
    assert b"even 3" in expected[1]
    for part, other in zip(left(suite, 8, option, "--eval"), expected, strict=True):
        assert part == other
