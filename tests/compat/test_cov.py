"""pytest-cov and coverage: what is measured is the same with episodes recorded and without."""

from __future__ import annotations

import json

import pytest

AGENT = """
def respond(message):
    if "refund" in message:
        return "It is on its way."
    if "manager" in message:
        return "One moment."
    return "Hello."

async def think(message):
    for word in message.split():
        if word == "never":
            return "unreached"
    return "thought"
"""

SUITE = """
import pytest
import agent

def test_greets(episode):
    with episode.turn("Hi") as turn:
        turn.reply(agent.respond("Hi"))
    episode.check("greets", episode.turns[-1].content == "Hello.")

def test_refunds(episode):
    assert agent.respond("refund, please") == "no"
    raise AssertionError("unreached")

async def test_thinks(episode):
    assert await agent.think("a b") == "thought"

@pytest.mark.episode(iterations=2)
def test_marked():
    agent.respond("Hi")

def test_plain():
    agent.respond("Hi")
"""

UNRECORDED = """
import contextlib
import asyncio
import pytest

class Turn:
    def reply(self, text): self.content = text

@pytest.fixture
def episode():
    class Episode:
        turns = []
        def turn(self, text):
            turn = Turn()
            self.turns.append(turn)
            return contextlib.nullcontext(turn)
        def check(self, name, passed): assert passed
    return Episode()

def pytest_configure(config):
    config.addinivalue_line("markers", "episode: not ours")

def pytest_pyfunc_call(pyfuncitem):
    if asyncio.iscoroutinefunction(pyfuncitem.obj):
        asyncio.run(pyfuncitem.obj(**{n: pyfuncitem.funcargs[n] for n in pyfuncitem._fixtureinfo.argnames}))
        return True
"""


@pytest.fixture
def covered(suite):
    """Return what coverage says of each file: lines run and not run, branches taken and not."""
    suite.write(agent=AGENT, test_suite=SUITE)

    def measure(*arguments, without_ours=False):
        options = ("--cov=agent", "--cov=test_suite", "--cov-branch", "--cov-report=json")
        plugins = ("pytest_cov", "xdist")
        ran = suite.run(*options, *arguments, plugins=plugins, without_ours=without_ours)
        assert ran.status == 1, ran.output
        return lines(suite)

    return measure


def lines(suite):
    files = json.loads((suite.root / "coverage.json").read_bytes())["files"]
    measured = ("executed_lines", "missing_lines", "executed_branches", "missing_branches")
    return {name: {key: file[key] for key in measured} for name, file in files.items()}


EXPECTED_MISSING = {"agent.py": [6, 12], "test_suite.py": [12]}


def test_recording_episodes_changes_nothing_of_it_here_and_on_workers(suite, covered):
    measured = covered()
    assert {name: file["missing_lines"] for name, file in measured.items()} == EXPECTED_MISSING
    assert covered("-n2") == measured
    suite.write(conftest=UNRECORDED)
    assert covered(without_ours=True) == measured


def test_its_threshold_fails_the_run_and_no_episode(suite):
    suite.write(agent=AGENT, test_suite=SUITE)
    options = ("--cov=agent", "--cov-fail-under=99", "-k", "greets")
    ran = suite.run(*options, plugins=("pytest_cov",))
    assert ran.status == 1, ran.output
    assert ran.outcomes == {"test_greets": "passed"}
