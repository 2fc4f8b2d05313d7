"""A suite of 20 scenarios of a framework's agent: recorded at once, and replayed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.frameworks.conftest import build_environ
from tests.model_server import ModelServer
from tests.model_server.script import Step, call
from tests.replayed_results import normalize

ROOT = Path(__file__).parents[2]
SCENARIOS = 20
SUITE = f"""
import pytest
from tests.frameworks.agents import FRAMEWORK as agents

@pytest.mark.parametrize("number", range({SCENARIOS}))
async def test_balance(aitest_run, number):
    result = await aitest_run(agents.teller, f"How much is on checking? In conversation {{number:02}}.")
    assert (result.success, result.final_response) == (True, f"$1,500.{{number:02}}.")
"""
REPLAYS = ("--episode-concurrency=20", "-n2")


@pytest.fixture
def folder(framework, tmp_path):
    """The folder of the suite."""
    (tmp_path / "test_suite.py").write_text(SUITE.replace("FRAMEWORK", framework))
    return tmp_path


@pytest.fixture
def run(folder):
    """Run the suite with variables of the models' addresses; return its episodes."""

    def run(addresses, *options):
        environ = {**os.environ, **addresses, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "pytest", "-q", "--episode-report-dir=out"]
        done = subprocess.run(
            [*command, *options],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert f"{SCENARIOS} passed" in done.stdout, done.stdout[-5000:] + done.stderr[-2000:]
        return json.loads((folder / "out/results.json").read_text())["episodes"]

    return run


def list_steps(framework, number):
    """Return the answers of the model in one scenario."""
    text = f"$1,500.{number:02}."
    last = Step(text=text)
    if framework == "smolagents":
        last = Step(tool_calls=[call("final_answer", answer=text)])
    return Step(tool_calls=[call("get_balance", account="checking")]), last


def test_replays_of_a_suite_are_the_recorded_run(row, framework, run, folder):
    names = [f"conversation {number:02}." for number in range(SCENARIOS)]
    script = {name: list_steps(framework, number) for number, name in enumerate(names)}
    with ModelServer(script) as server:
        addresses = build_environ(server)
        recorded = run(addresses, "--cassette=record", "--episode-concurrency=20")
        assert len(server.requests) == 2 * SCENARIOS
    answers = [[turn["role"] for turn in one["trajectory"]["turns"]] for one in recorded]
    counts = [roles.count("assistant") for roles in answers]
    row.record("concurrent", is_reached=counts == [2] * SCENARIOS, details=counts)
    cassettes = read_cassettes(folder)
    assert len(cassettes) == SCENARIOS
    # A client on a busy machine may have connected twice, which the recorded run counts.
    varying = {"traffic"}
    expected = normalize(recorded, varying)
    for option in REPLAYS:  # of the stopped server
        replayed = run(addresses, "--cassette=replay", option)
        is_equal = normalize(replayed, varying) == expected
        row.record("replay", is_reached=is_equal, details=(option, replayed))
        row.record("suite_replay", is_reached=is_equal, details=(option, replayed))
    assert read_cassettes(folder) == cassettes


def read_cassettes(folder):
    return {path.name: path.read_bytes() for path in (folder / "cassettes").iterdir()}
