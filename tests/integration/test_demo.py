"""`make demo` runs the example, and is content when its gate fails as it should."""

from __future__ import annotations

import shutil
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

from tests.processes import run_python

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
