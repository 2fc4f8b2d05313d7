"""Evaluations, on every pytest and beside every plugin: each assert is measured, none raises."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest

EVALUATION = """
import asyncio
import pytest
from hypothesis import given, settings, strategies as st
from ci_agent_eval import check, conversation

class Desk:
    def respond(self, message):
        if message == "break":
            raise ConnectionError("refused")
        return "drew " + message

@pytest.fixture
def episode_clock(): return lambda: 0.0

class Slow(Desk):
    async def respond(self, message):
        await asyncio.sleep(0)
        return super().respond(message)

def helper(reply):
    assert "never" in reply
    assert "drew" in reply

@conversation("Measured", Slow)
async def test_measured(agent):
    reply = await agent.send("A")
    assert reply.text == "drew A"
    assert "B" in reply
    helper(reply)
    check(0.25, "warm")

@pytest.mark.parametrize("number", [1, 2])
def test_numbers(number):
    for other in (1, 2):
        assert number == other

class TestDesk:
    @pytest.mark.episode(scenario_id="in a class", iterations=2)
    async def test_method(self):
        await asyncio.sleep(0)
        with pytest.raises(KeyError):
            {}["nothing"]
        assert await asyncio.sleep(0, 1) == 2, "slept"

@conversation("Plain", Slow)
def test_plain(agent):
    assert agent.send("A").text == "drew A"

@conversation("Breaks", Desk)
def test_breaks(agent):
    assert 1 == 1
    agent.send("break")

def test_holds(): assert 1 == 1

@settings(database=None, deadline=None, derandomize=True, max_examples=20)
@given(number=st.integers())
def test_property(number): assert number < 10
"""

OUTCOMES = {
    "test_measured": "failed",
    "test_numbers[1]": "failed",
    "test_numbers[2]": "failed",
    "test_method[1-of-2]": "failed",
    "test_method[2-of-2]": "failed",
    "test_plain": "passed",
    "test_breaks": "error",
    "test_holds": "passed",
    "test_property": "failed",
}

MEASURED = [
    ('reply.text == "drew A"', True),
    ('"B" in reply', False),
    ('"never" in reply', False),
    ('"drew" in reply', True),
    ("warm", False),
]


@pytest.fixture
def evaluate(suite):
    """Run the evaluation, as one that is named."""
    suite.write(desk_eval=EVALUATION)

    def run(*arguments, plugins=()):
        if "pytest_asyncio.plugin" in plugins:
            suite.configure_asyncio()
        return suite.run(*arguments, "desk_eval.py", plugins=plugins)

    return run


def assertions(ran, name):
    return [(a["name"], a["passed"]) for a in ran.assertions(name)]


BESIDE = {
    "alone": ((), ()),
    "-n4": (("xdist",), ("-n4",)),
    "asyncio": (("pytest_asyncio.plugin",), ("--asyncio-mode=strict",)),
    "asyncio-auto": (("pytest_asyncio.plugin",), ("--asyncio-mode=auto",)),
    "anyio": (("anyio",), ()),
    "timeout": (("timeout",), ("--timeout=30",)),
    "rerun": (("rerunfailures",), ("--reruns=1",)),
    "seed-1": (("randomly",), ("--randomly-seed=1",)),
    "seed-2": (("randomly",), ("--randomly-seed=2",)),
    "given": (("hypothesispytest",), ()),
    "cov": (("pytest_cov",), ("--cov=desk_eval", "--cov-branch")),
}


@pytest.mark.parametrize(("plugins", "arguments"), BESIDE.values(), ids=BESIDE)
def test_they_are_measured_as_they_are_alone(evaluate, plugins, arguments):
    ran = evaluate(*arguments, plugins=plugins)
    # The one that broke is an error, and no measurement.
    assert ran.status == 1, ran.output
    assert [name for name, outcome in ran.junit.items() if outcome != "passed"] == ["test_breaks"]
    assert ran.outcomes == OUTCOMES
    assert {e["mode"] for e in ran.episodes} == {"evaluation"}
    assert assertions(ran, "test_measured") == MEASURED
    # A failed assertion is no failure, and leaves nothing to rerun.
    again = {e["nodeid"].rpartition("::")[2] for e in ran.episodes if e.get("attempt", 1) > 1}
    assert again == ({"test_breaks"} if "rerunfailures" in plugins else set())


def test_one_past_its_time_has_failed_and_the_others_go_on(suite):
    suite.write(
        desk_eval="""
        import asyncio
        import signal
        import threading
        import pytest

        def end_the_timer():  # no machine is too slow for what comes before
            signal.setitimer(signal.ITIMER_REAL, 0.001)

        @pytest.mark.timeout(100)
        def test_slow():
            assert 1 == 1
            end_the_timer()
            threading.Event().wait(30)

        @pytest.mark.timeout(100)
        async def test_slow_async():
            assert 1 == 2
            end_the_timer()
            await asyncio.Event().wait()

        def test_z_other(): assert 1 == 1
        """
    )
    ran = suite.run("--timeout-method=signal", "desk_eval.py", plugins=("timeout",))
    assert ran.outcomes == {
        "test_slow": "failed",
        "test_slow_async": "failed",
        "test_z_other": "passed",
    }
    assert ran.status == 0, ran.output
    for name, first in (("test_slow", ("1 == 1", True)), ("test_slow_async", ("1 == 2", False))):
        found = assertions(ran, name)
        assert found[0] == first
        assert found[1][1] is False
        assert len(found) == 2


STEPS = """
import asyncio

def outer(flag):
    if flag:
        assert 1 == 1
    else:
        assert 1 == 2
    return [
        number
        for number in range(3)
    ]

@__import__("pytest").mark.episode
async def test_steps(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert (
        outer(True) ==
        [0, 1, 2]
    )
    for number in range(2):
        assert number < 5, "small"
        await asyncio.sleep(0)
    if number == 7:
        assert False
    try:
        assert number == 1
    finally:
        number = 0

def test_fails_on():
    {failing}
    for number in range(2):
        assert number < 5

@__import__("pytest").mark.skip
def test_never():
    assert 1 == 1
    assert 2 == 2
"""


@pytest.fixture
def covered(suite):
    """Return what coverage says of the evaluation: lines and branches, run and not."""

    def measure(*arguments, failing="assert 1 == 1"):
        suite.write(desk_eval=STEPS.replace("{failing}", failing))
        options = ("--cov=desk_eval", "--cov-branch", "--cov-report=json")
        ran = suite.run(*options, *arguments, "desk_eval.py", plugins=("pytest_cov", "xdist"))
        assert ran.status == 0, ran.output
        (file,) = json.loads((suite.root / "coverage.json").read_bytes())["files"].values()
        keys = ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
        return {key: file[key] for key in keys}

    return measure


def test_coverage_is_that_of_a_strict_run_also_after_a_failed_assertion(covered):
    measured = covered()
    assert covered("--eval-strict") == measured
    assert covered(failing="assert 1 == 2") == measured


CLAIMED = """
import asyncio
import pytest

@pytest.mark.{marker}
async def test_claimed(its_loop):
    assert 1 == 2
    await asyncio.sleep(0)
    assert asyncio.get_running_loop() is its_loop

{fixture}
async def its_loop({arguments}):
    return asyncio.get_running_loop()

@pytest.fixture
def anyio_backend(): return "asyncio"
"""


@pytest.mark.parametrize(
    ("marker", "plugin", "fixture", "arguments"),
    [
        ("asyncio", "pytest_asyncio.plugin", "import pytest_asyncio\n@pytest_asyncio.fixture", ""),
        ("anyio", "anyio", "@pytest.fixture", "anyio_backend"),
    ],
    ids=["asyncio", "anyio"],
)
def test_one_that_another_plugin_claims_runs_on_its_loop(suite, marker, plugin, fixture, arguments):
    if marker == "asyncio":
        suite.configure_asyncio()
    text = CLAIMED.replace("{marker}", marker).replace("{fixture}", fixture)
    suite.write(desk_eval=text.replace("{arguments}", arguments))
    ran = suite.run("desk_eval.py", plugins=(plugin,))
    assert ran.status == 0, ran.output
    assert assertions(ran, "test_claimed") == [
        ("1 == 2", False),
        ("asyncio.get_running_loop() is its_loop", True),
    ]


def test_subtests_of_an_evaluation_are_measured(suite):
    old = version("pytest").startswith("8.")
    suite.write(
        desk_eval="""
        def test_sub(subtests):
            for number in range(2):
                with subtests.test("sum", number=number):
                    assert number == 1
            assert 1 == 1
        """
    )
    ran = suite.run("desk_eval.py", plugins=("subtests",) if old else ())
    assert ran.status == 0, ran.output
    assert assertions(ran, "test_sub") == [
        ("number == 1", False),
        ("number == 1", True),
        ("1 == 1", True),
    ]
