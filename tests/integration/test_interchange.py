"""Other runners' results in, other tools' formats out: by the command line and by the action."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.processes import run_agent_eval

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests/fixtures/interchange"


@pytest.fixture
def agent_eval(tmp_path):
    def run(*arguments, **environ):
        return run_agent_eval(*arguments, cwd=tmp_path, **environ)

    return run


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "agent-eval-report"


def put(tmp_path, name, change=lambda text: text):
    (tmp_path / "out.json").write_text(change((FILES / name).read_text()))


def test_formats_of_others_are_written_where_they_are_asked_for(agent_eval, tmp_path, folder):
    put(tmp_path, "pydantic_evals/once.json")
    agent_eval("report", "--results", "out.json", "--formats", "ctrf")
    ctrf = json.loads((folder / "ctrf.json").read_text())
    assert ctrf["results"]["summary"]["failed"] == 3
    # What nobody asks for any more does not stay behind as if it were of this run.
    agent_eval("report", "--results", "out.json")
    assert not (folder / "ctrf.json").exists()
