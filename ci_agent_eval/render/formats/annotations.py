"""Annotations: each failure at its line, in a check run or as workflow commands.

The runner undoes the escaping of commands (ActionCommand.cs), and keeps 10 annotations of a type
for a step and 4,096 characters of a message (ExecutionContext.cs).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, Literal, TypeAlias

from ci_agent_eval.render.budget_overruns import BudgetOverrun
from ci_agent_eval.render.escape import cut_bytes, visible_line, visible_lines
from ci_agent_eval.render.links import Place
from ci_agent_eval.render.numbers import count_noun, format_part
from ci_agent_eval.render.phrases import ScenarioKey, get_phrase_text
from ci_agent_eval.render.report_view import ReportView
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


_Found: TypeAlias = tuple[tuple[Any, ...], ScenarioKey | None, Annotation]
"""The rank of an annotation, its scenario, and the annotation, which may have no path."""


def list_annotations(view: ReportView) -> tuple[Annotation, ...]:
    """Return the annotations that have a file: failures first, the new ones before others.

    With the uploaded page in the view's links, messages end with the conversation's address.
    """
    return tuple(annotation for _, annotation in _list_sorted(view))


def list_by_importance(view: ReportView) -> tuple[Annotation, ...]:
    """Return the same annotations with the first of each scenario before all others."""
    first: list[Annotation] = []
    others: list[Annotation] = []
    seen: set[ScenarioKey] = set()
    for key, annotation in _list_sorted(view):
        (others if key in seen else first).append(annotation)
        seen |= {key} if key is not None else set()
    return (*first, *others)


def render_annotations(shown: Sequence[Annotation]) -> str:
    """Return `annotations.json`: a list in the same order, for other tools to place."""
    listed = [asdict(annotation) for annotation in shown]
    return json.dumps(listed, indent=2, sort_keys=True) + "\n"


def count_unplaced(view: ReportView) -> int:
    """Count the problems without a file inside the repository."""
    return sum(1 for *_, annotation in _list_problems(view) if not annotation.path)


def _list_sorted(view: ReportView) -> Iterator[tuple[ScenarioKey | None, Annotation]]:
    for _, key, annotation in sorted(_list_problems(view), key=itemgetter(0)):
        if annotation.path:
            yield key, annotation


def _annotate(
    view: ReportView,
    place: Place,
    level: Level,
    title: str,
    message: str,
    *,
    kind: AnnotationKind,
    details: str | None = None,
    key: ScenarioKey | None = None,
    newly: bool = False,
) -> _Found:
    """Return an annotation within GitHub's limits; `newly`: it did not fail in the baseline."""
    path, line = place.path or "", place.line or 1
    page = view.links.conversation(key[0]) if key else None
    ending = f"\nConversation: {page}" if page else ""
    title = cut_bytes(visible_line(title, TITLE_BYTES), TITLE_BYTES)
    message = _format_message(message, MESSAGE_BYTES - len(ending)) + ending
    raw_details = _format_message(details) if details else None
    rank = (_LEVELS.index(level), not newly, path, line, title, message, kind)
    return rank, key, Annotation(path, line, line, level, title, message, raw_details)


def _format_message(text: str, limit: int = MESSAGE_BYTES) -> str:
    shown = visible_lines(text, limit).strip()
    return cut_bytes(shown, limit) or NO_REASON


def _list_problems(view: ReportView) -> Iterator[_Found]:
    for row in view.scenarios:
        yield from _list_scenario_problems(view, row)
    for finding in view.baseline_findings:
        about = "suite" if finding.name is None else finding.name.scenario_id
        yield _annotate(
            view,
            finding.place,
            "failure" if finding.gates else "warning",
            f"{about}: against the baseline",
            f"{finding.sentence}\n{finding.figures}",
            kind="baseline",
            key=finding.key,
            newly=True,
        )
    for known in view.manifest_differences:
        if known.place.file:
            level: Level = "failure" if known.gates else "warning"
            title = f"{known.scenario_id}: known scenario"
            text = f"{known.text} {known.detail}".rstrip()
            yield _annotate(view, known.place, level, title, text, kind="known")
    for over, overrun in view.overruns:
        if over is not None:
            yield _annotate_overrun(view, over, overrun)
    for case in view.tests.failing:
        place, message = view.links.place(case.file, case.line), case.message or NO_REASON
        yield _annotate(
            view, place, "failure", case.title, message, kind="test", details=case.detail
        )


def _list_scenario_problems(view: ReportView, row: ScenarioRow) -> Iterator[_Found]:
    tally, level, newly = row.scenario.tally, _find_level(row, view), row.change == "newly_failing"
    if tally.failed:
        passes = f"passes {row.passes}, {row.note}" if row.note else f"passes {row.passes}"
        details = [*view.changed_answers.get(row.key, ()), passes]
        for cause in row.causes:
            yield _annotate_cause(view, row, cause, level, details, newly=newly)
    if tally.error:
        title = f"{row.name.title}: {format_part(tally.error, tally.ran)} errors"
        # An error is no measurement: it weighs more than one that went badly.
        worse: Level = "warning" if level == "notice" else level
        reason = row.error_cause.reason or NO_REASON
        yield _annotate(view, row.place, worse, title, reason, kind="error", key=row.key)
    for cause in row.warnings:
        yield _annotate_cause(view, row, cause, "warning", [f"passes {row.passes}"], kind="warning")


def _annotate_cause(
    view: ReportView,
    row: ScenarioRow,
    cause: Cause,
    level: Level,
    details: Sequence[str],
    *,
    kind: AnnotationKind = "failed",
    newly: bool = False,
) -> _Found:
    """Return a failed check at its line; one in a helper that tests share, at its own test."""
    title, place, lines = f"{row.name.title}: {cause.name or 'failed'}", cause.place, [*details]
    if row.place.path is not None and _is_in_helper(cause.place, row.place):
        place, lines = row.place, [f"checked at {cause.place.text}", *lines]
    text = "\n".join([cause.sentence, *lines])
    return _annotate(view, place, level, title, text, kind=kind, key=row.key, newly=newly)


def _is_in_helper(check: Place, test: Place) -> bool:
    """Say whether a check is in another file than its test, or above it."""
    return check.file != test.file or (check.line or 0) < (test.line or 0)


def _annotate_overrun(view: ReportView, row: ScenarioRow, overrun: BudgetOverrun) -> _Found:
    level: Level = "failure" if overrun.gates else "warning"
    title = f"{row.name.title}: over budget, {overrun.label}"
    text = get_phrase_text(overrun.describe())
    return _annotate(view, row.place, level, title, text, kind="budget", key=row.key)


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
