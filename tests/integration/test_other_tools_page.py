"""The page about other runners: every command of ours on it does what it says."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from pathlib import Path

from ci_agent_eval.config.settings import Settings
from ci_agent_eval.results.importers.registry import BUILT_IN
from tests.processes import run_agent_eval, run_python
from tests.tables import each_row

ROOT = Path(__file__).parents[2]
FILES = ROOT / "tests/fixtures/interchange"
PAGE = (ROOT / "docs/other-tools.md").read_text()
COMMANDS = re.findall(r"^\$ agent-eval (.*)$", PAGE, re.MULTILINE)
NAMED = {
    "promptfoo.json": "promptfoo/once.json",
    "log.eval": "inspect_ai/repeated.eval",
    ".latest_run_full.json": "deepeval/single.json",
    "pydantic-evals.json": "pydantic_evals/once.json",
    "ctrf-report.json": "ctrf/jest.json",
}


def test_every_tool_has_its_section_and_command():
    assert len(COMMANDS) == len(NAMED) + 2
    tools = {importer.tool.partition(" (")[0] for importer in BUILT_IN.values()}
    assert {tool for tool in tools if f"\n### {tool}\n" not in PAGE} == set()


@each_row("name", NAMED)
def test_a_command_reads_what_its_tool_writes(name, tmp_path):
    (command,) = [given for given in COMMANDS if f" {name}" in f" {given}"]
    shutil.copy(FILES / NAMED[name], tmp_path / name)
    done = run_agent_eval(*shlex.split(command), cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    assert verdict["counts"]["findings"] == 0
    kind = "tests" if name == "ctrf-report.json" else "episodes"
    assert verdict["counts"][kind]["passed"] > 0


def test_the_python_of_the_page_writes_a_file_that_passes(tmp_path):
    (code,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "evaluate.py").write_text(code)
    assert run_python("evaluate.py", cwd=tmp_path).returncode == 0
    done = run_agent_eval("report", "--results", "pydantic-evals.json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


def test_the_setting_on_the_page_is_one():
    (given,) = re.findall(r"formats = (\[.*?\])", PAGE)
    assert Settings.model_validate({"formats": json.loads(given)}).formats == ("ctrf",)


def test_the_versions_on_the_page_are_those_of_the_files():
    notes = (FILES / "README.md").read_text()
    versions = re.findall(r"\| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert versions
    assert [version for version in versions if f" {version} " not in notes] == []
