"""A runner of suites of one file, whose output and progress are kept."""

from __future__ import annotations

import os

import pytest

from ci_agent_eval.contract.results import Results, Session
from ci_agent_eval.runner.process import SuiteCommand
from ci_agent_eval.runner.suite import SuiteRun, run_suite
from tests.integration.runner.rig import QUIET

SUITE = """
def test_one(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi", cost_usd=0.5)
    assert episode.turns

def test_two(episode):
    episode.budget("emails", 1, used=2)
    assert 1 == 2

def test_three(episode):
    raise ConnectionError
"""


@pytest.fixture
def environ():
    outer = ("PYTEST_", "COV_", "COVERAGE_")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(outer)}
    # Hypothesis' plugin would import all of hypothesis in every run: 1 s each.
    return kept | {"PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:randomly"}


@pytest.fixture
def run(tmp_path, environ):
    """Run a suite of one file; what it printed is in `lines`, its progress in `progress`."""

    class Runs:
        folder = tmp_path / "report"

        def __call__(
            self, tests=SUITE, env=None, grace_s=10.0, on_line=None, **command
        ) -> SuiteRun:
            (tmp_path / "pytest.ini").write_text("[pytest]\n")
            (tmp_path / "test_suite.py").write_text(tests)
            self.lines, self.progress = [], []

            def emit(line: str) -> None:
                self.lines.append(line)
                if on_line is not None:
                    on_line(line)

            command.setdefault("pytest_args", QUIET)
            return run_suite(
                SuiteCommand(report_dir=self.folder, paths=["."], cwd=tmp_path, **command),
                environ={**environ, **(env or {})},
                emit=emit,
                on_progress=self.progress.append,
                grace_s=grace_s,
            )

        @property
        def output(self) -> str:
            return "".join(self.lines)

        @property
        def session(self) -> Session:
            return Session.model_validate_json((self.folder / "session.json").read_bytes())

        @property
        def results(self) -> Results:
            return Results.model_validate_json((self.folder / "results.json").read_bytes())

    return Runs()
