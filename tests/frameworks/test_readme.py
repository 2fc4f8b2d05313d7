"""The first screen of the README: its agent, its test, and what the comment says of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.model_server import ModelServer
from tests.model_server.script import Step, call

README = (Path(__file__).parents[2] / "README.md").read_text()
FILES = re.findall(
    r"^```python\n# needs: ([\w-]+) \((\S+)\)\n(.*?)^```", README, re.MULTILINE | re.DOTALL
)
LOOKUPS = [Step(tool_calls=[call("get_balance", account=name)]) for name in ("checking", "savings")]

pytestmark = pytest.mark.skipif(
    os.environ.get("FRAMEWORK") != "openai-agents",
    reason="the README's agent is of the OpenAI Agents SDK",
)


@pytest.mark.parametrize(
    ("steps", "outcome", "stop"),
    [
        ([LOOKUPS[0], "You have $1,500.00."], "passed", "completed"),
        ([*LOOKUPS, "You have $3,000.00."], "failed", "tool_call_limit"),
    ],
)
def test_the_readme_s_agent_is_tested_as_it_says(server, tmp_path, steps, outcome, stop):
    assert {environment for environment, _, _ in FILES} == {"openai-agents"}
    for _, name, code in FILES:
        (tmp_path / name).write_text(code)

    with ModelServer(steps) as scripted:
        environ = {**os.environ, "OPENAI_BASE_URL": scripted.base_url}
        command = [sys.executable, "-m", "pytest", "--episode-report-dir=out"]
        done = subprocess.run(
            command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )

    (episode,) = json.loads((tmp_path / "out/results.json").read_text())["episodes"]
    assert (episode["outcome"], episode["stop_reason"]) == (outcome, stop), done.stdout
    assert episode["trajectory"]["turns"][1]["tool_calls"][0]["result"] == "$1,500.00"
    if outcome == "failed":
        report = [sys.executable, "-m", "ci_agent_eval", "report", "--results", "out"]
        subprocess.run(report, cwd=tmp_path, env=environ, capture_output=True, check=False)
        comment = (tmp_path / "agent-eval-report/comment.md").read_text().splitlines()
        start = README.index("> ### ❌ Agent evals failed: 1 of 1 scenario")
        quoted = README[start : README.index("\n\n", start)].splitlines()
        assert [line for line in quoted if line[2:] not in comment] == []
