"""The imports of a small report, and templates that are compiled once: what start-up time is."""

from __future__ import annotations

import json

import pytest

from tests.builders import junit_case, junit_xml
from tests.processes import run_agent_eval, run_python

MOST_MODULES = 130
"""Modules of this package that a report on one JUnit file imports; lower it when they get fewer."""

UNUSED = (
    "numpy",
    "github",
    "requests",
    "markdown_it",
    "lxml",
    "difflib",
    "ci_agent_eval.engine",
    "ci_agent_eval.model_traffic",
    "ci_agent_eval.analysis.adaptive_iterations",
    "ci_agent_eval.analysis.comparison.compare",
    "ci_agent_eval.app.cli.steer",
    "ci_agent_eval.app.confirmation",
    "ci_agent_eval.gate.comparison_reasons",
    "ci_agent_eval.render.comparison_changes",
    "ci_agent_eval.render.formats.ctrf",
    "ci_agent_eval.render.html.comparison",
    "ci_agent_eval.results.baselines",
    "ci_agent_eval.results.confirmation",
)
"""Needed by a baseline, episodes, other formats, other commands, or to publish."""

UNUSED_BY_A_RUN = (
    "numpy",
    "github",
    "requests",
    "markdown_it",
    "ci_agent_eval.app.action",
    "ci_agent_eval.app.confirmation",
    "ci_agent_eval.app.fork_handoff",
    "ci_agent_eval.app.install",
    "ci_agent_eval.checks",
    "ci_agent_eval.engine",
    "ci_agent_eval.github.api",
    "ci_agent_eval.github.publication",
    "ci_agent_eval.model_traffic",
    "ci_agent_eval.results.baselines",
    "ci_agent_eval.results.confirmation",
    "ci_agent_eval.steering",
)
"""Needed by a workflow, a baseline, installation, steering, or agents that we run."""

UNUSED_BY_EPISODES = (
    "ci_agent_eval.analysis",
    "ci_agent_eval.checks",
    "ci_agent_eval.engine",
    "ci_agent_eval.model_traffic",
    "ci_agent_eval.pytest_plugin.concurrency.session_loop",
    "ci_agent_eval.render",
    "ci_agent_eval.results",
    "ci_agent_eval.runner",
    "ci_agent_eval.steering",
)
"""Needed in pytest by adaptive iterations, checks, async tests, or agents that we run."""

_EPISODE = """
import pytest

@pytest.mark.episode
def test_echo(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hello", source="scripted")
    assert len(episode.turns) == 2
"""

_MAIN = """
import json, sys

sys.argv = ["agent-eval", *{words!r}]
from ci_agent_eval.__main__ import main

status = main()
print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)
"""

_PYTEST = """
import json, pytest, sys

status = pytest.main(["-q"])
print(json.dumps([status, sorted(sys.modules)]), file=sys.stderr)
"""


def list_modules(code, folder):
    """Run a program that passes; returns the modules that it imported."""
    done = run_python("-c", code, cwd=folder)
    status, modules = json.loads(done.stderr.splitlines()[-1])
    assert status == 0, done.stdout
    return set(modules)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "junit.xml").write_text(junit_xml(junit_case()))
    return tmp_path


def test_a_small_report_imports_only_its_own_part(folder):
    words = ["report", "--junit", "junit.xml", "--format", "json"]
    modules = list_modules(_MAIN.format(words=words), folder)
    assert sorted(set(UNUSED) & modules) == []
    ours = [name for name in modules if name.partition(".")[0] == "ci_agent_eval"]
    assert len(ours) <= MOST_MODULES, ours


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "test_echo.py").write_text(_EPISODE)
    return tmp_path


def test_a_run_imports_nothing_for_publishing_and_comparison(suite):
    modules = list_modules(_MAIN.format(words=["run", "."]), suite)
    assert sorted(set(UNUSED_BY_A_RUN) & modules) == []


def test_episodes_import_nothing_of_reports_and_of_agents_that_we_run(suite):
    assert sorted(set(UNUSED_BY_EPISODES) & list_modules(_PYTEST, suite)) == []


def _list_templates(folder):
    return sorted(folder.rglob("assets.*.pyc.*"))


def _write_page(folder, *, may_write=True):
    """Write the report's page in a new interpreter, with bytecode in a folder of the test."""
    environ = {"PYTHONDONTWRITEBYTECODE": "" if may_write else "1"}
    environ["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")
    done = run_agent_eval("report", "--junit", "junit.xml", cwd=folder, **environ)
    assert (done.returncode, done.stderr) == (0, "")
    return (folder / "agent-eval-report/report.html").read_bytes()


def test_templates_are_compiled_once_where_python_writes_bytecode(folder):
    first = _write_page(folder)
    compiled = [(file.name, file.stat().st_ino) for file in _list_templates(folder)]
    assert len(compiled) == 2
    assert _write_page(folder) == first
    assert [(file.name, file.stat().st_ino) for file in _list_templates(folder)] == compiled


def test_a_page_needs_no_folder_for_bytecode(folder):
    (folder / "bytecode").write_text("a file in its place")
    assert _write_page(folder)
