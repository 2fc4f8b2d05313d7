"""Other runners' results in, other tools' formats out: by the command line and by the action."""

from __future__ import annotations

import json
import shutil
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


def test_results_of_another_runner_gate(agent_eval, tmp_path, folder):
    put(tmp_path, "promptfoo/once.json")
    ran = agent_eval("report", "--results", "out.json")
    assert ran.returncode == 1, ran.stderr
    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["conclusion"] == "failure"
    assert verdict["counts"]["episodes"] == {"passed": 6, "failed": 3, "error": 1, "skipped": 0}
    assert "Expected output to contain" in (folder / "comment.md").read_text()
    episodes = json.loads((folder / "results.json").read_text())["episodes"]
    assert len(episodes) == 10


def test_results_of_another_runner_may_pass(agent_eval, tmp_path, folder):
    document = json.loads((FILES / "deepeval/conversations.json").read_text())
    document["conversationalTestCases"] = document["conversationalTestCases"][:1]
    (tmp_path / "out.json").write_text(json.dumps(document | {"testFailed": 0}))
    ran = agent_eval("report", "--results", "out.json")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_file_that_proves_nothing_fails(agent_eval, tmp_path):
    (tmp_path / "out.json").write_text('{"testCases": [], "conversationalTestCases": []}')
    ran = agent_eval("report", "--results", "out.json")
    assert ran.returncode == 1
    assert "it is a file of DeepEval and holds no results" in ran.stdout


def test_an_archive_is_read(agent_eval, tmp_path):
    shutil.copy(FILES / "inspect_ai/repeated.eval", tmp_path / "log.eval")
    ran = agent_eval("report", "--results", "log.eval")
    assert ran.returncode == 1
    assert "refunds/invoice" in ran.stdout


def test_formats_of_others_are_written_where_they_are_asked_for(agent_eval, tmp_path, folder):
    put(tmp_path, "pydantic_evals/once.json")
    agent_eval("report", "--results", "out.json", "--formats", "ctrf")
    ctrf = json.loads((folder / "ctrf.json").read_text())
    assert ctrf["results"]["summary"]["failed"] == 3
    # What nobody asks for any more does not stay behind as if it were of this run.
    agent_eval("report", "--results", "out.json")
    assert not (folder / "ctrf.json").exists()


def test_an_unknown_format_is_an_error(agent_eval):
    ran = agent_eval("report", "--results", "x", "--formats", "html")
    assert ran.returncode == 2
    assert "unknown format 'html'; known formats: ctrf" in ran.stderr


def test_a_file_of_others_is_not_overwritten(agent_eval, tmp_path, folder):
    name = "ctrf.json"
    put(tmp_path, "pydantic_evals/once.json")
    folder.mkdir()
    (folder / name).write_text('{"mine": 1}')
    ran = agent_eval("report", "--results", "out.json", "--formats", "ctrf")
    assert ran.returncode == 2
    assert f"{name}: was not written by this program" in ran.stderr
    assert (folder / name).read_text() == '{"mine": 1}'


def test_the_action_reads_and_writes_them_too(agent_eval, tmp_path, folder):
    put(tmp_path, "promptfoo/once.json")
    (tmp_path / "event.json").write_text("{}")
    ran = agent_eval(
        "action",
        INPUT_MODE="report",
        INPUT_RESULTS="out.json",
        INPUT_FORMATS="ctrf",
        GITHUB_EVENT_NAME="push",
        GITHUB_EVENT_PATH=str(tmp_path / "event.json"),
        GITHUB_REPOSITORY="octo/shop",
        GITHUB_SHA="b" * 40,
        GITHUB_WORKSPACE=str(tmp_path),
    )
    assert ran.returncode == 1, ran.stderr
    assert (folder / "ctrf.json").is_file()


def test_the_same_results_give_the_same_bytes(agent_eval, tmp_path, folder):
    put(tmp_path, "promptfoo/repeated.json")
    written = []
    for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        agent_eval(
            "report", "--results", "out.json", "--formats", "ctrf",
            PYTHONHASHSEED=seed, TZ=zone,
        )  # fmt: skip
        written.append([p.read_bytes() for p in sorted(folder.iterdir()) if p.is_file()])
    assert written[0] == written[1]
