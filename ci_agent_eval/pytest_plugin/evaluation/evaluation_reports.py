"""The evaluation report of a run, on the main process: `eval-results.json`, and the table.

It is written into the report directory if there is one, from the journals, which include episodes
whose process was killed before it could report. It is also written to the file of `--eval-results`,
or without a report directory to `eval-results.json`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.evaluation import evaluation_files
from ci_agent_eval.pytest_plugin.terminal import EpisodeReports, SummaryRecord

if TYPE_CHECKING:
    from ci_agent_eval.contract.evaluation import EvaluationReport
    from ci_agent_eval.pytest_plugin.evaluation.evaluation_table import EvaluationRow

_ADVICE = "name another file with --eval-results"


@dataclass
class EvaluationReports:
    """Writes the report; without evaluations it does and imports nothing."""

    config: pytest.Config
    reports: EpisodeReports
    _is_expected: bool
    """Whether evaluations may run."""
    _lines: Sequence[str] = ()
    _problems: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, config: pytest.Config, reports: EpisodeReports) -> EvaluationReports:
        """Remove an old report. Raises pytest.UsageError if the requested file is not ours."""
        found = cls(config, reports, evaluation_files.may_run_evaluations(config))
        if not config.option.collectonly:
            found._clear(config)
        if found._is_expected:
            from ci_agent_eval.authoring.eval_results import EvalResults  # noqa: PLC0415 - inert until used

            EvalResults.use_session(found._build_report)
        # Without an import, which every start of pytest would wait for.
        elif (module := sys.modules.get("ci_agent_eval.authoring.eval_results")) is not None:
            module.EvalResults.use_session(None)  # of an earlier session of this process
        return found

    def _build_report(self) -> EvaluationReport:
        """Return the report of the evaluations that have ended."""
        from ci_agent_eval.contract.evaluation import build_evaluation_report  # noqa: PLC0415 - inert

        return build_evaluation_report(row.episode for row in _build_rows(self._load_records()))

    def _clear(self, config: pytest.Config) -> None:
        """Remove an old report, so that it is not mistaken for a killed run's.

        A file that is not ours is refused only if the command line asks for evaluations.
        """
        is_named = options.get_eval_results_option(config) is not None
        path = options.get_eval_results_path(config)
        if path is None or not (is_named or self._is_expected):
            return
        from ci_agent_eval.errors import InputError  # noqa: PLC0415 - inert until used
        from ci_agent_eval.storage.run_folder import (  # noqa: PLC0415 - as above
            claim_evaluation_file,
            is_own_evaluation_file,
        )

        is_requested = is_named or evaluation_files.are_evaluations_requested(config)
        if not is_requested and not is_own_evaluation_file(path):
            return
        try:
            claim_evaluation_file(path, advice=_ADVICE)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
        except InputError as error:
            raise pytest.UsageError(f"eval results: {error}") from None
        except OSError as error:
            raise pytest.UsageError(f"eval results: {_describe_write_error(path, error)}") from None

    def write(self, session: pytest.Session) -> None:
        """Write the report when every worker has finished."""
        if not self._is_expected and not self.reports.evaluated:
            return
        from ci_agent_eval.contract.evaluation import build_evaluation_report  # noqa: PLC0415 - inert
        from ci_agent_eval.pytest_plugin.evaluation.evaluation_table import render_evaluations  # noqa: PLC0415

        rows = _build_rows(self._load_records())
        if not rows:
            return
        report = build_evaluation_report(row.episode for row in rows)
        self._lines = list(render_evaluations(rows, report, is_partial=_is_partial(session)))
        base = session.config.invocation_params.dir
        for path in _list_report_paths(session.config):
            self._write(path, report, base)
        if self._problems and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _load_records(self) -> Iterable[SummaryRecord]:
        load_records = self.reports.load_records
        return self.reports.evaluated.values() if load_records is None else load_records()

    def _write(self, path: Path, report: EvaluationReport, base: Path) -> None:
        from ci_agent_eval.errors import InputError  # noqa: PLC0415 - inert until used
        from ci_agent_eval.storage.run_folder import (  # noqa: PLC0415 - as above
            claim_evaluation_file,
            write_evaluation_file,
        )

        try:
            # A file may have been created there in the meantime.
            claim_evaluation_file(path, advice=_ADVICE)
            write_evaluation_file(path, report)
        except InputError as error:
            self._problems.append(str(error))
        except OSError as error:
            self._problems.append(_describe_write_error(path, error))
        else:
            shown = path.relative_to(base) if path.is_relative_to(base) else path
            self._lines = [*self._lines, f"wrote {shown}"]

    def write_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write the table if there were evaluations."""
        if not self._lines:
            return
        terminalreporter.write_sep("=", "evaluations")
        for line in self._lines:
            terminalreporter.write_line(make_printable(line))
        for problem in self._problems:
            terminalreporter.write_line(make_printable(f"ERROR: {problem}"), red=True)


def _is_partial(session: pytest.Session) -> bool:
    """Return whether the run was cut short: by -x, --maxfail, `pytest.exit` or Ctrl-C."""
    is_stopped = bool(session.shouldfail or session.shouldstop)
    return is_stopped or session.exitstatus == pytest.ExitCode.INTERRUPTED


def _describe_write_error(path: Path, error: OSError) -> str:
    return f"{path}: cannot be written ({error.strerror}); {_ADVICE}"


def _list_report_paths(config: pytest.Config) -> Iterable[Path]:
    """Return the paths of the report."""
    from ci_agent_eval.contract.results import EVAL_RESULTS_NAME  # noqa: PLC0415 - inert until used

    directory, path = options.get_report_dir(config), options.get_eval_results_path(config)
    found = [directory / EVAL_RESULTS_NAME] if directory is not None else []
    return dict.fromkeys([*found, *([path] if path is not None else [])])


def _build_rows(found: Iterable[SummaryRecord]) -> list[EvaluationRow]:
    """Return the rows of the evaluations, with the attempt of each that counts."""
    from ci_agent_eval.contract.episode import Episode  # noqa: PLC0415 - inert until used
    from ci_agent_eval.contract.evaluation import select_evaluations  # noqa: PLC0415 - as above
    from ci_agent_eval.pytest_plugin.evaluation.evaluation_table import EvaluationRow  # noqa: PLC0415 - as above

    by_key = {tuple(one["key"]): one for one in found if one["evaluation"] is not None}
    episodes = (Episode.model_validate(one["evaluation"]) for one in by_key.values())
    return [
        EvaluationRow(
            episode,
            violations=by_key[episode.key]["violations"],
            cost_usd=by_key[episode.key]["cost_usd"],
            judge_cost_usd=by_key[episode.key]["judge_cost_usd"],
        )
        for episode in select_evaluations(episodes)
    ]
