"""The two commands that end a comment work as they are copied."""

from __future__ import annotations

import json
import re
import shlex
import shutil

import pytest

ODD = "tone of [voice], 'x'"
SUITE = """
import pathlib
import pytest

CHANGED = pathlib.Path("changed").read_text()

def reply(episode, answer):
    with episode.turn("hello") as turn:
        turn.reply(answer)
    assert answer == "Good morning."

@pytest.mark.episode(scenario_id="refund", iterations=10, min_pass_rate=0.0)
def test_refund(episode):
    reply(episode, "Hi." if CHANGED == "refund" else "Good morning.")

@pytest.mark.episode(scenario_id="tone of [voice], 'x'", iterations=10, min_pass_rate=0.0)
def test_tone(episode):
    reply(episode, "Hi." if CHANGED != "refund" and CHANGED else "Good morning.")
"""


@pytest.fixture
def suite(agent_eval, tmp_path):
    """A suite with a baseline; the file `changed` names the scenario that answers differently."""
    folder = tmp_path / "tests/my episodes"
    folder.mkdir(parents=True)
    (folder / "test_desk.py").write_text(SUITE)
    (tmp_path / "changed").write_text("")
    done = agent_eval("run", "tests")
    assert done.returncode == 0, done.stdout
    shutil.copytree(tmp_path / "agent-eval-report", tmp_path / "base")
    (tmp_path / "agent-eval.toml").write_text('[compare]\nbaseline = "base"\n')
    return tmp_path


def read_commands(folder):
    comment = (folder / "agent-eval-report/comment.md").read_text()
    (block,) = re.findall(r"^```sh\n(.*?)^```", comment, re.DOTALL | re.MULTILINE)
    return [shlex.split(command)[1:] for command in block.splitlines()]


def test_the_first_runs_the_scenario_again_and_the_second_accepts_it(agent_eval, suite):
    (suite / "changed").write_text(ODD)
    assert agent_eval("run", "tests").returncode == 1
    inspect, accept = read_commands(suite)

    again = agent_eval(*inspect)
    assert again.returncode == 1, again.stdout + again.stderr
    found = json.loads((suite / "agent-eval-report/results.json").read_text())["episodes"]
    assert [(one["scenario_id"], one["outcome"]) for one in found] == [(ODD, "failed")] * 10

    accepted = agent_eval(*accept)
    assert accepted.returncode == 0, accepted.stderr
    assert f"{ODD} is accepted until 20" in accepted.stdout
    assert agent_eval("run", "tests").returncode == 0
