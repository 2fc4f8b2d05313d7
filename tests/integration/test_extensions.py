"""Packages of other authors, installed for real: checks, importers, formats, columns and sinks."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from tests.processes import clean_environ, run_python

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/extension_package"
PAGE = (ROOT / "docs/public-api.md").read_text()


class Environment:
    """A virtual environment that has the packages of the tests, and some of its own."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, symlinks=True, with_pip=False)
        self.python = folder / "bin/python"
        site = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
        lent = [sysconfig.get_path("purelib"), str(ROOT)]
        (site / "lent.pth").write_text("\n".join(lent) + "\n")

    def install(self, source: Path) -> None:
        command = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        offline = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check"]
        done = subprocess.run(
            [*command, *offline, str(source)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def run(self, *arguments: object, cwd: Path, **environ: str):
        return subprocess.run(
            [str(self.python), "-m", *map(str, arguments)],
            cwd=cwd,
            env=clean_environ(**environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment with the example package."""
    folder = tmp_path_factory.mktemp("extensions")
    found = Environment(folder / "venv")
    found.install(shutil.copytree(EXAMPLE, folder / "example"))
    return found


@pytest.fixture
def suite(tmp_path):
    return shutil.copytree(EXAMPLE / "suite", tmp_path / "suite")


def read_json(path: Path):
    return json.loads(path.read_text())


def test_a_suite_uses_the_check_the_format_the_column_and_the_sink(environment, suite, tmp_path):
    run = ("ci_agent_eval", "run", "suite", "--formats", "chat", "--", "-n2")
    done = environment.run(*run, cwd=tmp_path, ACME_EPISODES=str(tmp_path / "acme.jsonl"))
    assert done.returncode == 0, done.stdout + done.stderr
    folder = tmp_path / "agent-eval-report"
    (episode,) = read_json(folder / "results.json")["episodes"]
    assert [a["name"] for a in episode["assertions"]] == ["at most 6 words"]
    assert episode["columns"] == {"words": 6}
    assert '"words 6"' in (folder / "report.html").read_text()
    assert read_json(folder / "chat.json")["text"] == "Agent evals passed: 1 of 1 scenario"
    (line,) = (tmp_path / "acme.jsonl").read_text().splitlines()
    assert json.loads(line) == {"scenario": "opening_hours", "outcome": "passed", "words": 6}


def test_results_of_its_tool_are_read(environment, suite, tmp_path):
    results = suite / "acme.json"
    report = ("ci_agent_eval", "report", "--results", "suite/acme.json")
    assert environment.run(*report, cwd=tmp_path).returncode == 0
    results.write_text(results.read_text().replace("verdict", "score"))
    done = environment.run(*report, cwd=tmp_path)
    assert done.returncode == 1
    verdict = (tmp_path / "agent-eval-report/verdict.json").read_text()
    assert "of the package agent-eval-acme failed (KeyError: 'verdict')" in verdict


def test_the_code_of_the_page_is_the_example_s_and_runs(tmp_path):
    files = [EXAMPLE / "pyproject.toml", *(EXAMPLE / "agent_eval_acme").glob("*.py")]
    typed, *shown, report = re.findall(
        r"^```(?:python|toml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL
    )
    texts = [file.read_text() for file in files]
    assert [block for block in shown if not any(block in text for text in texts)] == []
    (tmp_path / "conftest.py").write_text(report)
    (tmp_path / "poem_eval.py").write_text("def test_poem():\n    assert True\n")
    done = run_python("-m", "pytest", "-s", "--eval", cwd=tmp_path)
    assert "1 of 1\n" in done.stdout
    (tmp_path / "test_plain.py").write_text("def test_plain():\n    pass\n")
    (tmp_path / "test_typed.py").write_text(typed)
    plain = run_python("-m", "pytest", "test_plain.py", "test_typed.py", cwd=tmp_path)
    assert plain.returncode == 0, plain.stderr
