"""Outcomes of concurrent episodes, and what stops them."""

from __future__ import annotations

import re
from textwrap import dedent

import pytest

from tests.plugin.conftest import SCRIPTED_CLOCK

# Evaluations, conversations, simulations and the rest: the same as one by one.


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


# A run that is to stop cancels what runs, and records it; nothing hangs, and nothing is lost.


STOP = """
import asyncio
import pytest
from pathlib import Path
from meeting import meet

PARTIES = {parties}

def tell(*words):
    with Path("told.txt").open("a") as file:
        print(*words, file=file)

@pytest.fixture
def desk(request):
    tell("up", request.node.name)
    yield
    tell("down", request.node.name)

@pytest.fixture(scope="module")
def floor():
    tell("up floor")
    yield
    tell("down floor")

async def test_one(episode, desk, floor): pass

async def test_two(episode, desk, floor):
    with episode.turn("Hello") as turn:
        turn.tool_call("lookup")
    await meet(PARTIES)
    {how}

@pytest.mark.parametrize("number", range(4))
async def test_three(episode, desk, floor, number):
    with episode.turn(f"Hello {{number}}") as turn:
        turn.tool_call("lookup")
    try:
        if number < PARTIES - 1:
            await meet(PARTIES)
        if PARTIES > 1:
            await asyncio.Event().wait()
    except asyncio.CancelledError:
        tell("cancelled", number)
        await asyncio.sleep(0)
        raise
    finally:
        tell("cleaned", number)
"""


def run(suite, how, *arguments, parties=4):
    suite.write(STOP.format(how=how, parties=parties))
    # pytester raises an inner run's KeyboardInterrupt again.
    run_suite = suite.run if arguments else suite.run_apart
    ran = run_suite(f"--episode-concurrency={parties}", *arguments)
    told = (suite.pytester.path / "told.txt").read_text().splitlines()
    return ran, told


CUT = "cancelled: the run stopped before its turn"


def assert_cut_off(ran, told, reason, parties=4):
    """The three that ran beside it were cancelled, and there is what they did until then."""
    for number in range(parties - 1):
        three = ran.episodes[f"test_three[{number}]"]
        assert three.outcome == "error"
        assert three.reason.startswith(reason), three.reason
        assert three.trajectory is not None
        assert [call.name for call in three.trajectory.tool_calls()] == ["lookup"]
        assert told.count(f"cancelled {number}") == told.count(f"cleaned {number}") == 1
    assert "test_three[3]" not in ran.episodes
    for line in [line for line in told if line.startswith("up ")]:
        assert told.count(line) == told.count(line.replace("up ", "down ")) == 1
    assert told[-1] == "down floor"


def test_the_first_failure_stops_it(suite):
    ran, told = run(suite, "assert False", "-x")
    ran.result.assert_outcomes(passed=1, failed=1)
    assert ran.result.ret == pytest.ExitCode.TESTS_FAILED
    assert ran.episodes["test_two"].outcome == "failed"
    assert_cut_off(ran, told, CUT)
    # The rest of the run says what one by one it would say.
    ran.result.stdout.fnmatch_lines(["!* stopping after 1 failures !*"])
    assert ran.session.selected == 6


def test_a_broken_setup_stops_it_too(suite):
    suite.write("""
        import pytest

        @pytest.fixture
        def broken(): raise OSError("no desk")

        async def test_one(episode): pass
        async def test_two(episode, broken): pass
        async def test_three(episode): pass
    """)
    seen = []
    for concurrency in (1, 8):
        ran = suite.run(f"--episode-concurrency={concurrency}", "-x")
        ran.result.assert_outcomes(passed=1, errors=1)
        seen.append((ran.result.ret, {n: e.outcome for n, e in ran.episodes.items()}))
    assert seen[0][0] == seen[1][0]
    # What had run to its end before its turn came has no report to stand for it.
    assert seen[1][1] == {**seen[0][1], "test_three": "error"}


def test_maxfail_counts_reports(suite):
    suite.write("""
        import pytest

        @pytest.mark.parametrize("number", range(9))
        async def test_fails(episode, number): assert number % 2
    """)
    for concurrency in (1, 8):
        ran = suite.run(f"--episode-concurrency={concurrency}", "--maxfail=3")
        ran.result.assert_outcomes(passed=2, failed=3)


INTERRUPTIONS = [
    ("pytest.exit('enough')", "interrupted: Exit"),
    ("raise KeyboardInterrupt", "interrupted: KeyboardInterrupt"),
]


@pytest.mark.parametrize(("how", "reason"), INTERRUPTIONS, ids=["exit", "raised"])
def test_an_interruption_stops_it(suite, how, reason):
    ran, told = run(suite, how + "\n    await asyncio.sleep(0)")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    assert (ran.session.state, ran.session.exit_status) == ("interrupted", 2)
    two = ran.episodes["test_two"]
    assert (two.outcome, two.reason) == ("error", reason)
    assert two.trajectory is not None
    assert_cut_off(ran, told, reason)
    assert ran.episodes["test_one"].outcome == "passed"
    ran.result.stdout.fnmatch_lines([f"ERROR  test_suite.py::test_three[[]0]: {reason}"])


def test_one_that_is_ahead_of_its_turn_interrupts_the_run(suite):
    suite.write("""
        import asyncio
        import pytest
        from meeting import meet

        async def test_slow(episode):
            with episode.turn("Hello") as turn:
                turn.tool_call("lookup")
            if {concurrency} > 1:
                await meet(2)
                await asyncio.Event().wait()

        async def test_ends_it(episode):
            if {concurrency} > 1:
                await meet(2)
            pytest.exit("enough", returncode=7)
    """)
    path = suite.pytester.path / "test_suite.py"
    text = path.read_text()
    status = set()
    for concurrency in (1, 2):
        path.write_text(text.replace("{concurrency}", str(concurrency)))
        ran = suite.run(f"--episode-concurrency={concurrency}")
        status.add((ran.result.ret, ran.session.state, ran.session.exit_status))
        assert ran.episodes["test_ends_it"].reason.startswith("interrupted: ")
    assert len(status) == 1
    slow = ran.episodes["test_slow"]
    assert slow.outcome == "error"
    assert slow.trajectory is not None


def test_an_exit_cancellation_or_timeout_of_one_is_its_failure_alone(suite):
    suite.write("""
        import asyncio
        import sys
        import pytest
        from meeting import meet

        @pytest.mark.parametrize("number", range(5))
        async def test_meet(episode, number):
            if {concurrency} > 1:
                await meet(5)
            if number == 1:
                raise SystemExit(3)
            if number == 2:
                sys.exit("gone")
            if number == 3:
                asyncio.current_task().cancel()
            async with asyncio.timeout(0.01 if number == 4 else None):
                await (asyncio.Event().wait() if number == 4 else asyncio.sleep(0))
    """)
    path = suite.pytester.path / "test_suite.py"
    text = path.read_text()
    seen = []
    for concurrency in (1, 5):
        path.write_text(text.replace("{concurrency}", str(concurrency)))
        ran = suite.run(f"--episode-concurrency={concurrency}")
        ran.result.assert_outcomes(passed=1, failed=4)
        seen.append({name: (e.outcome, e.reason) for name, e in ran.episodes.items()})
    assert seen[0] == seen[1]
    assert seen[1]["test_meet[4]"][0] == "error"


def test_stepwise_stops_too(suite):
    ran, told = run(suite, "assert False", "--stepwise")
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    assert_cut_off(ran, told, CUT)
