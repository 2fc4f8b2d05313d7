"""The experiment of a session, on the main process: its results, its end, and sending it.

Every run with xdist imports this module, so it imports the contract and the sender only if the
session has results.
"""

from __future__ import annotations

import os
import platform
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ci_agent_eval import __version__
from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.opik.experiment_options import (
    DATASET,
    PREFIX,
    SCORE,
    SERVER,
    ExperimentSettings,
)
from ci_agent_eval.pytest_plugin.parts import get_parts

if TYPE_CHECKING:
    from ci_agent_eval.contract.results import Experiment
    from ci_agent_eval.opik.experiments.push import OpikServer

ATTRIBUTE = "agent_eval_experiment"
"""Attribute of a report that carries its test's result, as JSON, to the main process."""

_COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


class ExperimentReport:
    """Collects the results of all processes, and sends them at the end of the session."""

    def __init__(self) -> None:
        self._started = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._results: dict[str, str] = {}
        """The latest result of each test, as JSON."""
        self._lines: list[str] = []

    @classmethod
    def start(cls, config: pytest.Config) -> None:
        """Collect results on the main process."""
        parts = get_parts(config)
        if not options.is_worker(config) and parts.experiment is None:
            parts.experiment = cls()

    def note_report(self, report: pytest.TestReport) -> None:
        """Keep the latest result of each test; a later phase or attempt replaces it."""
        if (text := getattr(report, ATTRIBUTE, None)) is not None:
            self._results[report.nodeid] = text

    def build_experiment(self, config: pytest.Config) -> Experiment | None:
        """Return the experiment of the results so far; None without any."""
        if not self._results:
            return None
        from ci_agent_eval.contract.results import Experiment, ExperimentResult  # noqa: PLC0415 - inert until used
        from ci_agent_eval.redaction import Redactor  # noqa: PLC0415 - as above

        redactor = Redactor.from_environ(os.environ)
        settings = _load_settings(config)
        results = map(ExperimentResult.model_validate_json, self._results.values())
        commit = config.option.episode_commit or os.environ.get("GITHUB_SHA") or None
        configuration = {
            "agent_eval": __version__,
            "passed_score": settings.get_text(SCORE),
            "pytest": pytest.__version__,
            "python": platform.python_version(),
            "suite": options.get_suite_name(config),
        }
        return Experiment(
            name=redactor.text(f"{settings.get_text(PREFIX)}-{self._started}"),
            dataset=redactor.text(settings.get_text(DATASET)),
            commit=None if commit is None else redactor.text(commit),
            configuration=redactor.value(configuration),
            results=tuple(sorted(results, key=lambda result: result.nodeid)),
        )

    def send(self, session: pytest.Session) -> None:
        """Send the experiment, unless the session was interrupted."""
        config = session.config
        experiment = self.build_experiment(config)
        if experiment is None:
            return
        from ci_agent_eval.contract.results import RESULTS_NAME  # noqa: PLC0415 - inert until used
        from ci_agent_eval.opik.experiments.push import find_usable_server  # noqa: PLC0415 - as above

        outcomes = Counter(result.outcome for result in experiment.results)
        counts = ", ".join(f"{outcomes[outcome]} {outcome}" for outcome in sorted(outcomes))
        self._lines.append(f"{experiment.name}: {counts}")
        directory = options.get_report_dir(config)
        if directory is not None:
            self._lines.append(f"kept in {_shorten_path(directory / RESULTS_NAME, config)}")
        settings = _load_settings(config)
        server = None
        if settings.get_flag(SERVER) is not False:
            server = find_usable_server(os.environ, settings.opik_file)
        if server is not None:
            self._send(experiment, server, is_complete=session.exitstatus in _COMPLETE)
        elif directory is None:
            self._lines.append(
                f"note: it is not kept; --episode-report-dir=DIR keeps it in DIR/{RESULTS_NAME}"
            )

    def _send(self, experiment: Experiment, server: OpikServer, *, is_complete: bool) -> None:
        if not is_complete:
            self._lines.append(f"note: not sent to Opik at {server.host}: pytest did not finish")
            return
        from ci_agent_eval.opik.experiments.push import send_to_opik  # noqa: PLC0415 - inert until used

        problem = send_to_opik(experiment, server, os.environ)
        sent = f"sent to Opik at {server.host}"
        self._lines.append(sent if problem is None else f"note: not sent: {problem}")

    def write_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write where the experiment is, or why it was not sent."""
        if self._lines:
            terminalreporter.write_sep("=", "experiment")
            for line in self._lines:
                terminalreporter.write_line(make_printable(line))


def _load_settings(config: pytest.Config) -> ExperimentSettings:
    from ci_agent_eval.opik.experiments.push import load_opik_file  # noqa: PLC0415 - inert until used

    return ExperimentSettings.from_config(config, load_opik_file(os.environ, Path.home()))


def _shorten_path(path: Path, config: pytest.Config) -> Path:
    return path.relative_to(config.rootpath) if path.is_relative_to(config.rootpath) else path
