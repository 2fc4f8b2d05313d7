"""docs/mutation.md: its commands print what it shows, and its tables are complete."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from ci_agent_eval.contract.mutations import CoverageProblem, MutationKind
from ci_agent_eval.render.terminal.mutations import PROBLEMS
from tests.plugin.conftest import SCRIPTED_CLOCK
from tests.processes import run_agent_eval

PAGE = (Path(__file__).parents[2] / "docs/mutation.md").read_text()
OPEN, CLOSED = re.findall(r"^```python \S+\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CONSOLE = re.findall(r"^```console\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
OUTPUT = CONSOLE[0].partition("mutate test_refund.py\n")[2]


@pytest.fixture
def mutate(tmp_path):
    def run(source):
        (tmp_path / "conftest.py").write_text(SCRIPTED_CLOCK)
        (tmp_path / "test_refund.py").write_text(source)
        assert run_agent_eval("run", "test_refund.py", cwd=tmp_path).returncode == 0
        return run_agent_eval("mutate", "test_refund.py", cwd=tmp_path).stdout

    return run


def test_the_output_is_what_is_shown(mutate):
    assert mutate(OPEN) == OUTPUT


def test_the_holes_are_closed(mutate, tmp_path):
    head = OPEN.partition("@conversation")[0]
    mutate(head + CLOSED)
    report = json.loads((tmp_path / "agent-eval-report/mutations.json").read_text())
    (scenario,) = report["scenarios"]
    left = [r["mutation"] for r in scenario["results"] if r["status"] == "unnoticed"]
    assert left == [{"kind": "exceed_budget", "budget": "latency_ms"}]


def test_every_kind_and_every_reason_is_on_the_page():
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(get_args(MutationKind))
    assert set(PROBLEMS) == set(get_args(CoverageProblem))
