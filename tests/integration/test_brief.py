"""`agent-eval brief`: printed from the folder of a report, with the gate's exit code."""

from __future__ import annotations

import json

import pytest

from tests.builders import junit_case, junit_xml
from tests.processes import run_agent_eval


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "passed.xml").write_text(junit_xml(junit_case()))
    (tmp_path / "failed.xml").write_text(junit_xml(junit_case('<failure message="1 is not 2"/>')))
    return tmp_path


def test_the_brief_of_a_failed_report_names_its_causes(folder):
    run_agent_eval("report", "--junit", "failed.xml", cwd=folder)
    text = run_agent_eval("brief", cwd=folder)
    document = run_agent_eval("brief", "agent-eval-report", "--format", "json", cwd=folder)
    assert (text.returncode, document.returncode) == (1, 1)
    assert text.stdout.startswith("### ❌ Tests failed: 1 of 1\n\n**Cause 1:** ")
    assert len(json.loads(document.stdout)["causes"]) == 1
    again = run_agent_eval("brief", cwd=folder)
    assert again.stdout == text.stdout


def test_without_a_report_it_says_what_writes_one(folder):
    done = run_agent_eval("brief", "nowhere", cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nowhere/verdict.json: cannot be read" in done.stderr
    assert "agent-eval run" in done.stderr
