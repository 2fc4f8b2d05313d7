"""`EvalResults`: the report of the evaluations for programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from ci_agent_eval.contract.evaluation import EvaluationReport
from ci_agent_eval.contract.results import EVAL_RESULTS_NAME
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.run_folder import load_evaluation_file


class EvalResults:
    """The evaluations of this process's pytest session, or of a report folder."""

    _session: ClassVar[Callable[[], EvaluationReport] | None] = None

    @classmethod
    def generate_report(cls, folder: str | Path | None = None) -> EvaluationReport:
        """Return the aggregate report of a folder; without one, of the session.

        A running session's report has the evaluations that have ended. Raises InputError if the
        session has no evaluation, or if the folder has no `eval-results.json`.
        """
        if folder is not None:
            return load_evaluation_file(Path(folder) / EVAL_RESULTS_NAME)
        if cls._session is None:
            raise InputError(
                "EvalResults.generate_report(): no pytest session with evaluations ran in this "
                "process; name a report folder, or call it in the process that started pytest"
            )
        return cls._session()

    generateReport = generate_report  # noqa: N815 - the name in the design of evaluations

    @classmethod
    def use_session(cls, build: Callable[[], EvaluationReport] | None) -> None:
        """Take the session's report from `build`, None: it has none; the pytest plugin calls it."""
        cls._session = build
