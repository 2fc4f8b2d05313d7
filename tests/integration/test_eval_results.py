"""`eval-results.json` in the report folder: of merged runs, without secrets, and only if there
are evaluations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ci_agent_eval.contract.evaluation import is_rendered_evaluation
from ci_agent_eval.pipeline import Job, report_files
from ci_agent_eval.redact import REDACTED
from ci_agent_eval.settings import Settings
from tests.builders import episode, evaluated, write_run

SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def report(tmp_path: Path):
    def run(*results: str) -> Path:
        job = Job(Settings(), root=tmp_path, environ={"API_TOKEN": SECRET})
        report_files(job, results=results, junit=())
        return tmp_path / "agent-eval-report/eval-results.json"

    return run


def names(path: Path) -> list[str]:
    return [conversation["name"] for conversation in json.loads(path.read_text())["conversations"]]


def test_it_holds_the_evaluations_of_all_that_was_read(report, tmp_path):
    write_run(tmp_path / "one", evaluated("b", True), episode("strict"))
    write_run(tmp_path / "two", evaluated("a", False), evaluated("c", outcome="skipped"))
    path = report("one", "two")
    assert names(path) == ["a", "b"]
    assert is_rendered_evaluation(path.read_text())
    assert json.loads(path.read_text())["passRate"] == 50


def test_the_order_of_files_does_not_show(report, tmp_path):
    for name in "ab":
        write_run(tmp_path / name, evaluated(name, True, False, duration_ms=1.5))
    first = report("a", "b").read_bytes()
    assert report("b", "a").read_bytes() == first


def test_no_secret_gets_into_it(report, tmp_path):
    said = [{"name": f"is {SECRET}", "passed": False, "reason": f"got {SECRET}"}]
    write_run(tmp_path / "one", evaluated("a", assertions=said, nodeid=f"t.py::x[{SECRET}]"))
    text = report("one").read_text()
    assert SECRET not in text
    assert text.count(REDACTED) == 2


def test_without_evaluations_there_is_none_and_a_former_one_goes(report, tmp_path):
    write_run(tmp_path / "one", evaluated("a", True))
    write_run(tmp_path / "two", episode())
    path = report("one")
    assert path.exists()
    assert not report("two").exists()


def test_it_is_no_result_file(report, tmp_path):
    write_run(tmp_path / "agent-eval-report", evaluated("a", True))
    report("agent-eval-report")
    assert names(report("agent-eval-report/*.json")) == ["a"]
    verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    assert [f["kind"] for f in verdict["summary"]["findings"]] == []
