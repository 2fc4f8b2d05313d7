"""Annotations: each failure at its line, in a check run or as workflow commands.

The runner undoes the escaping of commands (ActionCommand.cs), and keeps 10 annotations of a type
for a step and 4,096 characters of a message (ExecutionContext.cs).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any, Literal

from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.budget_overruns import BudgetOverrun
from ci_agent_eval.render.escape import cut_bytes, visible_line, visible_lines
from ci_agent_eval.render.links import Place
from ci_agent_eval.render.numbers import NOT_MEASURED, count_noun, format_part
from ci_agent_eval.render.phrases import ScenarioKey
from ci_agent_eval.render.report_view import FailingTest, ReportView
from ci_agent_eval.render.scenario_rows import NO_REASON, Cause, ScenarioRow

Level = Literal["failure", "warning", "notice"]

AnnotationKind = Literal["failed", "error", "warning", "baseline", "budget", "test", "known"]
"""The kind of problem: a failed assertion, an infrastructure error, and so on."""

_LEVELS: tuple[Level, ...] = ("failure", "warning", "notice")

# GitHub's limits are 64 KB and 255 characters; counted in bytes they hold however it counts.
MESSAGE_BYTES = 64_000
TITLE_BYTES = 255


@dataclass(frozen=True, slots=True)
class Annotation:
    """One annotation of a check run, within GitHub's limits."""

    path: str
    """Relative to the repository's root, forward slashes, inside it."""
    start_line: int
    end_line: int
    level: Level
    title: str
    message: str
    raw_details: str | None = None


@dataclass(frozen=True, slots=True)
class _Problem:
    """A problem to annotate, whether it has a place in the repository or not."""

    place: Place
    level: Level
    title: str
    message: str
    details: str | None = None
    newly: bool = False
    """It did not fail in the baseline."""
    kind: AnnotationKind = "failed"
    key: ScenarioKey | None = None
    """The scenario it is about; None: it is about something else."""


def list_annotations(view: ReportView) -> tuple[Annotation, ...]:
    """Return the annotations that have a file: failures first, the new ones before others.

    With the uploaded page in the view's links, messages end with the conversation's address.
    """
    return tuple(annotation for _, annotation in _list_sorted(view) if annotation.path)


def list_by_importance(view: ReportView) -> tuple[Annotation, ...]:
    """Return the same annotations with the first of each scenario before all others."""
    first: list[Annotation] = []
    others: list[Annotation] = []
    seen: set[ScenarioKey] = set()
    for problem, annotation in _list_sorted(view):
        if annotation.path:
            (others if problem.key in seen else first).append(annotation)
            if problem.key is not None:
                seen.add(problem.key)
    return (*first, *others)


def render_annotations(shown: Sequence[Annotation]) -> str:
    """Return `annotations.json`: a list in the same order, for other tools to place."""
    listed = [asdict(annotation) for annotation in shown]
    return json.dumps(listed, indent=2, sort_keys=True) + "\n"


def count_unplaced(view: ReportView) -> int:
    """Count the problems without a file inside the repository."""
    return sum(1 for problem in _list_problems(view) if problem.place.path is None)


def _list_sorted(view: ReportView) -> Sequence[tuple[_Problem, Annotation]]:
    found = ((problem, _build_annotation(problem, view)) for problem in _list_problems(view))
    return sorted(found, key=lambda pair: _sort_key(*pair))


def _sort_key(problem: _Problem, annotation: Annotation) -> tuple[Any, ...]:
    return (
        _LEVELS.index(annotation.level),
        not problem.newly,
        annotation.path,
        annotation.start_line,
        annotation.title,
        annotation.message,
        problem.kind,
    )


def _build_annotation(problem: _Problem, view: ReportView) -> Annotation:
    line = problem.place.line or 1
    page = view.links.conversation(problem.key[0]) if problem.key else None
    ending = f"\nConversation: {page}" if page else ""
    return Annotation(
        path=problem.place.path or "",
        start_line=line,
        end_line=line,
        level=problem.level,
        title=cut_bytes(visible_line(problem.title, TITLE_BYTES), TITLE_BYTES),
        message=_format_message(problem.message, MESSAGE_BYTES - len(ending)) + ending,
        raw_details=_format_message(problem.details) if problem.details else None,
    )


def _format_message(text: str, limit: int = MESSAGE_BYTES) -> str:
    shown = visible_lines(text, limit).strip()
    return cut_bytes(shown, limit) or NO_REASON


def _list_problems(view: ReportView) -> Iterator[_Problem]:
    for row in view.scenarios:
        answer = view.changed_answers.get(row.key, ())
        yield from _list_scenario_problems(row, _find_level(row, view), answer)
    yield from map(_build_finding_problem, view.baseline_findings)
    yield from _list_manifest_problems(view)
    for about, overrun in view.overruns:
        if about is not None:
            yield _build_overrun_problem(about, overrun)
    yield from map(_build_test_problem, view.failing_tests)


def _build_finding_problem(finding: BaselineFinding) -> _Problem:
    """Return a finding of the comparison; one without a scenario of this run has no place."""
    about = "suite" if finding.name is None else finding.name.scenario_id
    return _Problem(
        place=finding.place,
        level="failure" if finding.gates else "warning",
        title=f"{about}: against the baseline",
        message=f"{finding.sentence}\n{finding.figures}",
        newly=True,
        kind="baseline",
        key=finding.key,
    )


def _list_manifest_problems(view: ReportView) -> Iterator[_Problem]:
    """Yield the differences of the run from lines of the scenario manifest, at those lines."""
    for row in view.manifest_differences:
        if row.place.file:
            yield _Problem(
                place=row.place,
                level="failure" if row.gates else "warning",
                title=f"{row.scenario_id}: known scenario",
                message=f"{row.text} {row.detail}".rstrip(),
                kind="known",
            )


def _list_scenario_problems(
    row: ScenarioRow, level: Level, answer: Sequence[str]
) -> Iterator[_Problem]:
    tally, newly = row.scenario.tally, row.change == "newly_failing"
    if tally.failed:
        for cause in row.causes:
            found = _build_cause_problem(row, cause, level, [*answer, _describe_passes(row)])
            yield replace(found, newly=newly)
    if tally.error:
        title = f"{row.name.title}: {format_part(tally.error, tally.ran)} errors"
        # An error is no measurement: it weighs more than one that went badly.
        worse: Level = "warning" if level == "notice" else level
        reason = row.error_cause.reason or NO_REASON
        yield _Problem(row.place, worse, title, reason, kind="error", key=row.key)
    for cause in row.warnings:
        found = _build_cause_problem(row, cause, "warning", [f"passes {row.passes}"])
        yield replace(found, kind="warning")


def _describe_passes(row: ScenarioRow) -> str:
    return f"passes {row.passes}, {row.note}" if row.note else f"passes {row.passes}"


def _build_cause_problem(
    row: ScenarioRow, cause: Cause, level: Level, details: Sequence[str]
) -> _Problem:
    """Return a failed check at its line; one in a helper that tests share, at its own test."""
    title, place, lines = f"{row.name.title}: {cause.name or 'failed'}", cause.place, [*details]
    if row.place.path is not None and _is_in_helper(cause.place, row.place):
        place, lines = row.place, [f"checked at {cause.place.text}", *lines]
    return _Problem(place, level, title, "\n".join([cause.sentence, *lines]), key=row.key)


def _is_in_helper(check: Place, test: Place) -> bool:
    """Say whether a check is in another file than its test, or above it."""
    return check.file != test.file or (check.line or 0) < (test.line or 0)


def _build_overrun_problem(row: ScenarioRow, overrun: BudgetOverrun) -> _Problem:
    figures = f"observed {overrun.observed} ({overrun.over_by})"
    observed = figures if overrun.is_measured else NOT_MEASURED
    return _Problem(
        place=row.place,
        level="failure" if overrun.gates else "warning",
        title=f"{row.name.title}: over budget, {overrun.label}",
        message=f"{overrun.strength} limit {overrun.limit}, {observed}",
        kind="budget",
        key=row.key,
    )


def _build_test_problem(test: FailingTest) -> _Problem:
    case, message = test.case, test.case.message or NO_REASON
    return _Problem(test.place, "failure", case.title, message, case.detail, kind="test")


def _find_level(row: ScenarioRow, view: ReportView) -> Level:
    """Return the level of the scenario's failures: `failure` if they fail the gate."""
    if row.is_only_measured:
        return "warning" if view.misses_thresholds else "notice"
    if row.status == "failing" and not row.judgement.fails_alone:
        return "failure" if row.is_required and view.misses_suite_rate else "warning"
    # A scenario that reaches its pass rate with failed iterations does not gate.
    return "failure" if row.is_required and not row.is_passing else "warning"


PER_TYPE = 10
COMMAND_BYTES = 4_096

_COMMANDS: dict[Level, str] = {"failure": "error", "warning": "warning", "notice": "notice"}


def render_commands(annotations: Sequence[Annotation]) -> str:
    """Return one command a line: the first of each type, then a notice that counts the rest."""
    shown = [annotation for level in _COMMANDS for annotation in _take_first(annotations, level)]
    lines = [_format_command(annotation) for annotation in shown]
    if rest := len(annotations) - len(shown):
        left_out = f"{count_noun(rest, 'annotation')} more than the runner shows; see the report"
        lines.append(format_workflow_command("notice", left_out))
    return "".join(f"{line}\n" for line in lines)


def format_workflow_command(kind: Literal["error", "warning", "notice"], sentence: str) -> str:
    """Return the command that shows one sentence of our own on the run's page."""
    return f"::{kind} title=agent-eval::{escape_data(cut_bytes(sentence, COMMAND_BYTES))}"


def escape_data(text: str) -> str:
    """Escape the message of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a command's property."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")


def _take_first(annotations: Sequence[Annotation], level: Level) -> Iterator[Annotation]:
    # The notice that counts the rest is one of the ten notices.
    most = PER_TYPE - 1 if level == "notice" else PER_TYPE
    return islice((a for a in annotations if a.level == level), most)


def _format_command(annotation: Annotation) -> str:
    properties = {
        "file": annotation.path,
        "line": str(annotation.start_line),
        "endLine": str(annotation.end_line),
        "title": annotation.title,
    }
    written = ",".join(f"{name}={escape_property(value)}" for name, value in properties.items())
    message = escape_data(cut_bytes(annotation.message, COMMAND_BYTES))
    return f"::{_COMMANDS[annotation.level]} {written}::{message}"
