"""The evaluation report of a run, on the main process: `eval-results.json`, and the table.

It is written into the report directory if there is one, from the journals, which include episodes
whose process was killed before it could report. It is also written to the file of `--eval-results`,
or without a report directory to `eval-results.json`.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.evaluation import (
    EvaluationReport,
    build_evaluation_report,
    find_evaluation_error,
    name_conversations,
    score_episode,
    select_evaluations,
)
from ci_agent_eval.contract.results import EVAL_RESULTS_NAME
from ci_agent_eval.contract.wording import (
    format_column,
    format_cost,
    make_printable,
    one_line,
    pluralize,
    summarize_reason,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin import options
from ci_agent_eval.pytest_plugin.evaluation import evaluation_files
from ci_agent_eval.pytest_plugin.terminal import EpisodeReports, SummaryRecord
from ci_agent_eval.storage.run_folder import (
    claim_evaluation_file,
    is_own_evaluation_file,
    write_evaluation_file,
)

if TYPE_CHECKING:
    from ci_agent_eval.contract.evaluation import EvaluationReport


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
        return build_evaluation_report(row.episode for row in _build_rows(self._load_records()))

    def _clear(self, config: pytest.Config) -> None:
        """Remove an old report, so that it is not mistaken for a killed run's.

        A file that is not ours is refused only if the command line asks for evaluations.
        """
        is_named = options.get_eval_results_option(config) is not None
        path = options.get_eval_results_path(config)
        if path is None or not (is_named or self._is_expected):
            return
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
    directory, path = options.get_report_dir(config), options.get_eval_results_path(config)
    found = [directory / EVAL_RESULTS_NAME] if directory is not None else []
    return dict.fromkeys([*found, *([path] if path is not None else [])])


def _build_rows(found: Iterable[SummaryRecord]) -> list[EvaluationRow]:
    """Return the rows of the evaluations, with the attempt of each that counts."""
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


MAX_NAME = 60
"""Maximum characters of a conversation's name."""

MAX_CELL = 30
"""Maximum characters of a plugin's column."""

MAX_REASON = 300
"""Maximum characters of a reason's first line."""

MAX_FAILURES = 20
"""Maximum failed assertions listed per conversation."""

_TITLES = ("conversation", "passed", "score", "assertions", "duration")
_WORDS = {"passed": "yes", "failed": "no", "error": "error", "skipped": "skipped"}


@dataclass(frozen=True, slots=True)
class EvaluationRow:
    """One conversation, with the budget violations and costs of its reports."""

    episode: Episode
    violations: Sequence[str] = ()
    cost_usd: float | None = None
    judge_cost_usd: float | None = None


def render_evaluations(
    rows: Sequence[EvaluationRow], report: EvaluationReport, *, is_partial: bool = False
) -> Iterator[str]:
    """Yield the table of the conversations in their order, and the line of totals.

    The line of totals mentions a run that was cut short.
    """
    added = sorted({name for row in rows for name in row.episode.columns})
    titles = (*_TITLES, *(_truncate_text(name, MAX_CELL) for name in added))
    cells = [
        _build_cells(row.episode, name, added)
        for row, name in zip(rows, _list_names(rows), strict=True)
    ]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    yield _format_line(titles, widths)
    for row, shown in zip(rows, cells, strict=True):
        yield _format_line(shown, widths)
        for detail in _list_details(row):
            yield f"    {detail}"
    partial = "; partial: the run was cut short" if is_partial else ""
    yield _format_totals(rows, report) + partial


def _list_names(rows: Sequence[EvaluationRow]) -> Iterator[str]:
    """Yield the name of each conversation, shortened before its number, if any."""
    for row, name in zip(rows, name_conversations([row.episode for row in rows]), strict=True):
        scenario = row.episode.scenario_id
        yield _truncate_text(scenario, MAX_NAME) + name.removeprefix(scenario)


def _build_cells(episode: Episode, name: str, added: Sequence[str]) -> tuple[str, ...]:
    """Return a cell for each title; `added` are the columns of plugins."""
    own = (format_column(episode.columns[n]) if n in episode.columns else "-" for n in added)
    passed = sum(1 for assertion in episode.assertions if assertion.passed)
    scored = episode.outcome in {"passed", "failed"}
    return (
        name,
        _WORDS[episode.outcome],
        _format_score(score_episode(episode)) if scored else "-",
        f"{passed}/{len(episode.assertions)}",
        "-" if episode.duration_ms is None else f"{episode.duration_ms:,.0f} ms",
        *(_truncate_text(one_line(cell), MAX_CELL) for cell in own),
    )


def _format_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    (name, passed, *figures), (first, second, *rest) = cells, widths
    shown = (f"{figure:>{width}}" for figure, width in zip(figures, rest, strict=True))
    return "  ".join((f"{name:<{first}}", f"{passed:<{second}}", *shown)).rstrip()


def _list_details(row: EvaluationRow) -> Iterator[str]:
    failed = [assertion for assertion in row.episode.assertions if not assertion.passed]
    yield from map(_format_failure, failed[:MAX_FAILURES])
    if (more := len(failed) - MAX_FAILURES) > 0:
        yield f"and {pluralize(more, 'more failed assertion')}, listed in the report"
    if error := find_evaluation_error(row.episode):
        yield f"{row.episode.outcome}: {_get_first_line(error)}"
    elif row.episode.outcome == "skipped":
        yield f"skipped: {_get_first_line(row.episode.reason or 'no reason given')}"
    for violation in row.violations:
        yield f"over {violation}"


def _format_failure(assertion: Assertion) -> str:
    place = f"{assertion.file}:{assertion.line}: " if assertion.file else ""
    warning = "warning: " if assertion.severity == "warning" else ""
    reason = f": {_get_first_line(summarize_reason(assertion.reason))}" if assertion.reason else ""
    return f"{place}{warning}{_get_first_line(assertion.name)}{reason}"


def _format_totals(rows: Sequence[EvaluationRow], report: EvaluationReport) -> str:
    outcomes = Counter(row.episode.outcome for row in rows)
    total, passed = report.total_conversations, report.passed_conversations
    share = _format_percentage(report.pass_rate)
    parts = [f"{pluralize(total, 'conversation')}: {passed} passed ({share} %)"]
    if outcomes["passed"] + outcomes["failed"]:
        parts[0] += f", average score {_format_score(report.average_score)}"
    if outcomes["error"]:
        parts.append(f"{outcomes['error']} ended in an error, not in the average")
    if outcomes["skipped"]:
        parts.append(f"{outcomes['skipped']} skipped, not counted")
    return "; ".join([*parts, *_format_costs(rows)])


def _format_costs(rows: Sequence[EvaluationRow]) -> Iterator[str]:
    judge = [row.judge_cost_usd for row in rows if row.judge_cost_usd is not None]
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    if costs or judge:
        share = f" (judge: {format_cost(math.fsum(judge))})" if judge else ""
        yield f"{format_cost(math.fsum([*costs, *judge]))}{share}"


def _format_score(score: float) -> str:
    """Format a score; only exactly 1 is shown as 1, and only 0 as 0."""
    return f"{score if score in (0, 1) else min(max(score, 0.01), 0.99):.2f}"


def _format_percentage(percentage: float) -> str:
    shown = percentage if percentage in (0, 100) else min(max(percentage, 0.1), 99.9)
    return f"{shown:.1f}"


def _get_first_line(text: str) -> str:
    return _truncate_text(text.strip().partition("\n")[0], MAX_REASON)


def _truncate_text(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
