"""The action without Docker: its program, as its steps start it, against GitHub's fake.

tests/container/test_act_report.py runs all its steps.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from ruamel.yaml import YAML

from tests.builders import episode, write_run
from tests.integration.test_action import (  # noqa: F401 - fixtures
    HEAD,
    ROOT,
    TOKEN,
    github,
    pull,
    workspace,
)
from tests.processes import SECONDS, clean_environ, declared_inputs

ACTION = YAML(typ="safe").load(ROOT / "report/action.yml")
JUNIT = '<testsuite name="shop"><testcase classname="a" name="{}">{}</testcase></testsuite>'
WITHOUT_POSIX = Path(__file__).with_name("without_posix.py")


@pytest.fixture
def step(workspace, tmp_path):  # noqa: F811
    """Run the step that reports, with these inputs, on the packages of the tests."""
    packages = tmp_path / "temp/agent-eval-report-action/packages"
    packages.parent.mkdir(parents=True)
    packages.symlink_to(Path(click.__file__).parents[1])

    def run(*, before="", **inputs):
        for name in ("summary.md", "output.txt"):
            (workspace.files / name).write_text("")
        declared = declared_inputs(ACTION)
        given = {name.replace("_", "-"): text for name, text in inputs.items()}
        environ = {
            "AGENT_EVAL_INPUTS": json.dumps({**declared, "github-token": TOKEN, **given}),
            "GITHUB_ACTION_PATH": str(ROOT / "report"),
            "PYTHON": sys.executable,
            "RUNNER_TEMP": str(tmp_path / "temp"),
        }
        (report,) = (s for s in ACTION["runs"]["steps"] if s.get("id") == "report")
        assert report["shell"] == "bash"
        script = report["run"].replace('"$GITHUB_ACTION_PATH/', f'{before}"$GITHUB_ACTION_PATH/')
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
            cwd=workspace.folder,
            env=clean_environ(**workspace.environ(), **environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )

    return run


def comment_and_conclusion(workspace):  # noqa: F811
    (comment,) = workspace.github.comments("octo/shop", 7)
    (run,) = workspace.github.check_runs("octo/shop")
    assert (run.head_sha, run.status) == (HEAD, "completed")
    return comment.body, run.conclusion


def test_reports_results_of_earlier_steps(workspace, step):  # noqa: F811
    (workspace.folder / "shop.xml").write_text(JUNIT.format("test_bad", "<failure>no</failure>"))

    (workspace.folder / "agent-eval.toml").write_text('title = "Shop"\n')

    done = step(junit="shop.xml")

    assert done.returncode == 1, done.stdout + done.stderr
    body, conclusion = comment_and_conclusion(workspace)
    assert "### ❌ Shop failed: 1 of 1" in body
    assert "test_bad" in body
    assert conclusion == "failure"
    assert workspace.outputs["conclusion"] == "failure"
    assert "test_bad" in workspace.summary


def test_says_what_the_container_says(workspace, step):  # noqa: F811
    write_run(workspace.folder / "evals", episode("refund"), episode("exchange"))
    write_run(workspace.folder / "before", episode("refund"))
    inputs = {"mode": "report", "results": "evals", "baseline": "before"}
    assert workspace.action(**inputs).returncode == 0
    expected = comment_and_conclusion(workspace), workspace.summary, workspace.outputs
    files = {p.name: p.read_bytes() for p in (workspace.folder / "agent-eval-report").iterdir()}

    done = step(**inputs)
    assert done.returncode == 0, done.stdout + done.stderr

    assert (comment_and_conclusion(workspace), workspace.summary, workspace.outputs) == expected
    written = {p.name: p.read_bytes() for p in (workspace.folder / "agent-eval-report").iterdir()}
    assert written == files


def test_needs_nothing_that_windows_lacks(workspace, step):  # noqa: F811
    write_run(workspace.folder / "evals/now", episode("refund"), episode("exchange"))
    write_run(workspace.folder / "before", episode("refund"))
    (workspace.folder / "agent-eval.toml").write_text('formats = ["ctrf"]\n')

    inputs = {"results": "evals/*", "baseline": "before", "publish": "false"}
    for given in (inputs, {"mode": "publish"}):
        assert workspace.github.check_runs("octo/shop") == []
        done = step(before=f"{WITHOUT_POSIX} ", **given)
        assert done.returncode == 0, done.stdout + done.stderr

    body, conclusion = comment_and_conclusion(workspace)
    assert "1 new scenario: `exchange`" in body
    assert conclusion == "success"


def test_runs_no_suite(workspace, step):  # noqa: F811
    done = step(mode="run")

    assert done.returncode == 2
    assert "input mode: this action runs no suite" in done.stderr
    assert workspace.github.check_runs("octo/shop") == []


def test_imports_nothing_of_the_workspace(workspace, step):  # noqa: F811
    for name in ("ci_agent_eval", "click", "json", "sitecustomize"):
        (workspace.folder / f"{name}.py").write_text("raise SystemExit('hijacked')\n")
    (workspace.folder / "shop.xml").write_text(JUNIT.format("test_good", ""))

    done = step(junit="shop.xml")

    assert done.returncode == 0, done.stdout + done.stderr
    assert comment_and_conclusion(workspace)[1] == "success"


def test_inputs_are_data(workspace, step):  # noqa: F811
    done = step(junit='$(touch pwned) `touch pwned` "; touch pwned; "')

    assert done.returncode != 0
    assert not (workspace.folder / "pwned").exists()
    assert all("${{" not in one["run"] for one in ACTION["runs"]["steps"] if "run" in one)
