"""The end of an experiment, on the main process: finish it, send it and report it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ci_agent_eval.contract.wording import make_printable, pluralize
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.opik import experiment_options
from ci_agent_eval.pytest_plugin.options import is_worker

NAME = "ci_agent_eval_experiment_end"
PROBLEMS = "agent_eval_experiment_problems"
"""Key under which an xdist worker reports the problems of its experiment."""

_COMPLETE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)


def register_experiment_end(config: pytest.Config) -> ExperimentEnd:
    """Return the plugin object of this process, registered on the first call."""
    found = config.pluginmanager.get_plugin(NAME)
    if not isinstance(found, ExperimentEnd):
        found = ExperimentEnd()
        config.pluginmanager.register(found, NAME)
    return found


class ExperimentEnd:
    """Collects problems, finishes the experiment and sends it."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.is_used = False
        """Whether this process itself writes to an experiment."""
        self._lines: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the problems of an xdist worker."""
        output = getattr(node, "workeroutput", None) or {}
        self.problems += [text for text in output.get(PROBLEMS, ()) if text not in self.problems]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Finish the experiment if one was started; an interrupted one stays unfinished."""
        config = session.config
        if is_worker(config):
            config.workeroutput[PROBLEMS] = self.problems  # type: ignore[attr-defined]
            return
        path = experiment_options.ExperimentSettings.from_config(config).store
        if not path.is_file():
            return
        try:
            self._finish(config, path, is_complete=exitstatus in _COMPLETE)
        except InputError as error:
            # If xdist's workers used the file, they have already reported the problem.
            self.problems += [str(error)] if self.is_used else []

    def _finish(self, config: pytest.Config, path: Path, *, is_complete: bool) -> None:
        from ci_agent_eval.opik.experiments import ExperimentStore  # noqa: PLC0415 - inert until used
        from ci_agent_eval.opik.experiments.experiment_text import format_outcomes  # noqa: PLC0415 - as above

        uid = experiment_options.get_experiment_identity(config).uid
        with ExperimentStore.open(path) as store:
            if (experiment := store.experiment(uid)) is None:
                return
            if is_complete:
                store.finish(uid, datetime.now(UTC).isoformat(timespec="milliseconds"))
            is_below = path.is_relative_to(config.rootpath)
            display_path = path.relative_to(config.rootpath) if is_below else path
            self._lines.append(f"{experiment.name}: {format_outcomes(experiment.outcomes)}")
            self._lines.append(f"kept in {display_path}; agent-eval experiments show {uid}")
            unsent = [found.uid for found in store.find_unsent("opik")] if is_complete else []
        if experiment.sink is not None and unsent:
            self._send(path, unsent)

    def _send(self, path: Path, uids: list[str]) -> None:
        from ci_agent_eval.opik.experiments.opik_settings import load_opik_file  # noqa: PLC0415 - above
        from ci_agent_eval.opik.experiments.push import find_usable_server, push_to_opik  # noqa: PLC0415 - as above

        target = find_usable_server(os.environ, load_opik_file(os.environ, Path.home()))
        if target is None:
            return
        pushed = push_to_opik(path, uids, target, os.environ)
        if pushed.sent:
            self._lines.append(
                f"sent to Opik at {target.host}: {pluralize(len(pushed.sent), 'experiment')}"
            )
        if pushed.problem is not None:
            unsent = pluralize(len(uids) - len(pushed.sent), "experiment")
            self.problems.append(
                f"{pushed.problem}; {unsent} not sent: the next run sends what is left, and so "
                "does `agent-eval experiments push`"
            )

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write where the experiment is stored, and its problems."""
        lines = [*self._lines, *(f"note: {problem}" for problem in self.problems)]
        if lines:
            terminalreporter.write_sep("=", "experiment")
            for line in lines:
                terminalreporter.write_line(make_printable(line))
