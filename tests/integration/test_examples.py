"""The examples do what their READMEs say, offline; `make demo` runs one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.processes import clean_environ, run_agent_eval, run_python

# The examples do what their READMEs say, offline.


EXAMPLES = Path(__file__).parents[2] / "examples"


def test_banking_replays_without_a_key(tmp_path):
    shutil.copytree(EXAMPLES / "banking", tmp_path / "banking")
    environ = {k: v for k, v in clean_environ().items() if not k.startswith("OPENAI")}
    done = subprocess.run(
        [sys.executable, "-m", "ci_agent_eval", "run", "banking"],
        cwd=tmp_path,
        env=environ | {"PATH": os.environ["PATH"]},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
    calls = verdict["summary"]["calls"]
    assert (calls["live"], calls["replayed"], calls["scripted"]) == (0, 8, 0)
    assert verdict["counts"]["episodes"]["passed"] == 3


def run_example(name, folder):
    """Run a copy of an example, as its README says; returns the process and the verdict."""
    done = run_agent_eval("run", name, cwd=folder)
    verdict = folder / "agent-eval-report/verdict.json"
    return done, json.loads(verdict.read_text()) if verdict.exists() else {}


def passes_offline(name, folder, *, scripted):
    """Run a copy of an example that passes without a model; returns the verdict and episodes."""
    done, verdict = run_example(name, folder)
    assert done.returncode == 0, done.stdout
    calls = verdict["summary"]["calls"]
    assert (calls["live"], calls["scripted"]) == (0, scripted)
    results = json.loads((folder / "agent-eval-report/results.json").read_text())
    return verdict, results["episodes"]


def told_in_readme(example, episodes):
    readme = (EXAMPLES / example / "README.md").read_text()
    return all(f"| `{episode['scenario_id']}` |" in readme for episode in episodes)


@pytest.fixture
def retail(tmp_path):
    shutil.copytree(EXAMPLES / "retail_desk", tmp_path / "retail")
    return tmp_path


def test_the_retail_desk_fails_on_what_no_answer_says(retail):
    done, _ = run_example("retail", retail)
    assert done.returncode == 1
    results = json.loads((retail / "agent-eval-report/results.json").read_text())
    assert told_in_readme("retail_desk", results["episodes"])
    failing = [one["scenario_id"] for one in results["episodes"] if one["outcome"] != "passed"]
    assert failing == ["return_lamp"]
    comment = (retail / "agent-eval-report/comment.md").read_text()
    assert '+ items/W1003,L-2.status: "returned"' in comment


def test_the_retail_desk_passes_without_its_mistake(retail):
    agent = retail / "retail/agent.py"
    mended = agent.read_text().replace('if item["name"] in each["name"]:', "if item is each:")
    assert mended != agent.read_text()
    agent.write_text(mended)
    verdict, _ = passes_offline("retail", retail, scripted=18)
    assert verdict["counts"]["episodes"]["passed"] == 9


# `make demo` runs the example, and is content when its gate fails as it should.


ROOT = Path(__file__).parents[2]


def test_it_ends_well_when_the_gate_fails_for_the_two_reasons(tmp_path):
    for name in ("scripts", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("node_modules"))
    done = run_python(str(tmp_path / "scripts/demo.py"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        done.stdout.splitlines()[-2]
        == "make demo: as expected. The example has one failing scenario and one over its budget, so"
    )
    assert "Report: agent-eval-report/report.html" in done.stdout
    assert "FAILURES" not in done.stdout
    assert "\nFAILED " not in done.stdout


def test_it_fails_when_the_gate_opens(tmp_path):
    for name in ("scripts", "examples"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("node_modules"))
    for module in (tmp_path / "examples/refund_desk").glob("test_*.py"):
        module.write_text("def test_nothing(): pass\n")
    done = run_python(str(tmp_path / "scripts/demo.py"), cwd=tmp_path)
    assert done.returncode == 1
    assert "make demo: expected exit 1 for" in done.stdout


def test_it_installs_at_most_40_packages():
    names: set[str] = set()
    waiting = [("ci-agent-eval", "pytest"), ("flit-core", ""), ("uv", "")]
    while waiting:
        name, extra = waiting.pop()
        if name not in names:
            names.add(name)
            wanted = map(Requirement, requires(name) or ()) if name != "uv" else ()
            waiting += [
                (each.name.lower(), "")
                for each in wanted
                if each.marker is None or each.marker.evaluate({"extra": extra})
            ]
    assert {"pytest", "pydantic", "pygithub"} < names
    assert len(names) <= 40
