"""`agent-eval` in the test's own folder, and runs of the example for the tests of a module."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.github.rig import Rig, open_rig
from tests.integration.refund_desk import copy_desk, run_desk
from tests.processes import run_agent_eval


@pytest.fixture
def agent_eval(tmp_path):
    """Run `agent-eval` in the test's folder; keywords are environment variables."""

    def run(*arguments, cwd=tmp_path, **environ):
        return run_agent_eval(*arguments, cwd=cwd, **environ)

    return run


@pytest.fixture
def desk(tmp_path):
    return copy_desk(tmp_path)


@pytest.fixture(scope="module")
def failed_desk(tmp_path_factory):
    return run_desk(tmp_path_factory.mktemp("failed"), mended=False)


@pytest.fixture(scope="module")
def passed_desk(tmp_path_factory):
    return run_desk(tmp_path_factory.mktemp("passed"), mended=True)


def _write_results(folder, episodes):
    folder.mkdir(parents=True)
    found = [item.model_dump(mode="json") for item in episodes]
    text = json.dumps({"schema_version": "1", "suite": "default", "episodes": found})
    (folder / "results.json").write_text(text)


@pytest.fixture
def compared(agent_eval, tmp_path):
    """Report on a head against runs of the base; return the exit code, the verdict and the text."""

    def run(head, *bases, options=(), settings="", **gate):
        _write_results(tmp_path / "head", head)
        for number, base in enumerate(bases):
            _write_results(tmp_path / f"base/run-{number}", base)
        rules = "".join(f"{name} = {value!r}\n" for name, value in gate.items())
        (tmp_path / "agent-eval.toml").write_text(f"{settings}[gate]\n{rules}")
        done = agent_eval("report", "--results", "head/results.json", "--baseline", "base",
                          "--format", "markdown", *options)  # fmt: skip
        verdict = json.loads((tmp_path / "agent-eval-report/verdict.json").read_text())
        return done.returncode, verdict, done.stdout

    return run


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """Publish to GitHub's fake, and see what became of it."""
    yield from open_rig(tmp_path)
