"""Annotations: what failed, at the line that made it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from ci_agent_eval.render.baseline_findings import BaselineFinding
from ci_agent_eval.render.escape import cut_bytes, many_lines, visible_line
from ci_agent_eval.render.links import Place
from ci_agent_eval.render.numbers import NOT_MEASURED, of
from ci_agent_eval.render.overruns import Overrun
from ci_agent_eval.render.report_view import FailingTest, ReportView
from ci_agent_eval.render.scenario_name import Key
from ci_agent_eval.render.scenario_rows import NO_REASON, Cause, ScenarioRow

Level = Literal["failure", "warning", "notice"]

AnnotationKind = Literal["failed", "error", "warning", "baseline", "budget", "test", "known"]
"""What an annotation is about: a failed assertion, an error of the world, and so on."""

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
class _Draft:
    """An annotation before it is known whether it has a place."""

    place: Place
    level: Level
    title: str
    message: str
    details: str | None = None
    newly: bool = False
    """It did not fail in the baseline."""
    kind: AnnotationKind = "failed"
    key: Key | None = None
    """The scenario it is about; None: it is about something else."""


def annotations(view: ReportView) -> tuple[Annotation, ...]:
    """Return every annotation that has a file to stand in: failures first, of them the new ones."""
    return tuple(annotation for _, annotation in _ordered(view))


def by_importance(view: ReportView) -> tuple[Annotation, ...]:
    """Return the same annotations with the first of each scenario before all others."""
    first: list[Annotation] = []
    others: list[Annotation] = []
    seen: set[Key] = set()
    for key, annotation in _ordered(view):
        (others if key in seen else first).append(annotation)
        if key is not None:
            seen.add(key)
    return (*first, *others)


def noted(view: ReportView) -> tuple[tuple[AnnotationKind, Annotation], ...]:
    """Return every annotation with its kind, in order; one without a place has an empty path."""
    found = [(draft.kind, draft.newly, _placed(draft)) for draft in _drafts(view)]
    ordered = sorted(found, key=lambda item: (_order((not item[1], item[2])), item[0]))
    return tuple((kind, annotation) for kind, _, annotation in ordered)


def render_annotations(shown: Sequence[Annotation]) -> str:
    """Return `annotations.json`: a list in the same order, for other tools to place."""
    listed = [asdict(annotation) for annotation in shown]
    return json.dumps(listed, indent=2, sort_keys=True) + "\n"


def unplaced(view: ReportView) -> int:
    """Count what would be annotated if it named a file inside the repository."""
    return sum(1 for draft in _drafts(view) if draft.place.path is None)


def _ordered(view: ReportView) -> list[tuple[Key | None, Annotation]]:
    """Return the annotations that have a place in their order, each with its scenario."""
    placed = [
        (draft.newly, draft.key, _placed(draft))
        for draft in _drafts(view)
        if draft.place.path is not None
    ]
    ordered = sorted(placed, key=lambda item: _order((not item[0], item[2])))
    return [(key, annotation) for _, key, annotation in ordered]


def _order(pair: tuple[bool, Annotation]) -> tuple[int, bool, str, int, str, str]:
    known, annotation = pair
    return (
        _LEVELS.index(annotation.level),
        known,
        annotation.path,
        annotation.start_line,
        annotation.title,
        annotation.message,
    )


def _placed(draft: _Draft) -> Annotation:
    line = draft.place.line or 1
    return Annotation(
        path=draft.place.path or "",
        start_line=line,
        end_line=line,
        level=draft.level,
        title=cut_bytes(visible_line(draft.title, TITLE_BYTES), TITLE_BYTES),
        message=_message(draft.message),
        raw_details=_message(draft.details) if draft.details else None,
    )


def _message(text: str) -> str:
    shown = many_lines(text, MESSAGE_BYTES).strip()
    return cut_bytes(shown, MESSAGE_BYTES) or NO_REASON


def _drafts(view: ReportView) -> Iterator[_Draft]:
    for row in view.scenarios:
        yield from _scenario(row, _level(row, missed=view.misses_thresholds))
    yield from map(_baseline_finding, view.baseline_findings)
    yield from _known(view)
    for about, overrun in view.overruns:
        if about is not None:
            yield _overrun(about, overrun)
    yield from map(_test, view.failing_tests)


def _baseline_finding(finding: BaselineFinding) -> _Draft:
    """Return a finding of the comparison; one without a scenario of this run has no place."""
    about = "suite" if finding.name is None else finding.name.scenario_id
    figures = f"{finding.now} now, {finding.before} before"
    return _Draft(
        place=finding.place,
        level="failure" if finding.gates else "warning",
        title=f"{about}: against the baseline",
        message=f"{finding.sentence}\n{'passes ' if finding.compared else ''}{figures}",
        newly=True,
        kind="baseline",
        key=finding.key,
    )


def _known(view: ReportView) -> Iterator[_Draft]:
    """Yield the differences of the run from lines of the scenario manifest, at those lines."""
    for row in view.known:
        if row.place.file:
            yield _Draft(
                place=row.place,
                level="failure" if row.gates else "warning",
                title=f"{row.scenario_id}: known scenario",
                message=f"{row.text} {row.detail}".rstrip(),
                kind="known",
            )


def _scenario(row: ScenarioRow, level: Level) -> Iterator[_Draft]:
    tally, newly = row.scenario.tally, row.change == "newly_failing"
    if tally.failed:
        for cause in row.causes:
            yield replace(_cause(row, cause, level, row.note), newly=newly)
    if tally.error:
        title = f"{row.name.title}: {of(tally.error, tally.ran)} errors"
        # An error is no measurement: it weighs more than one that went badly.
        worse: Level = "warning" if level == "notice" else level
        reason = row.error_cause.reason or NO_REASON
        yield _Draft(row.place, worse, title, reason, kind="error", key=row.key)
    for cause in row.warnings:
        yield replace(_cause(row, cause, "warning"), kind="warning")


def _cause(row: ScenarioRow, cause: Cause, level: Level, note: str = "") -> _Draft:
    title = f"{row.name.title}: {cause.name or 'failed'}"
    passes = f"passes {row.passes}, {note}" if note else f"passes {row.passes}"
    return _Draft(cause.place, level, title, f"{cause.sentence}\n{passes}", key=row.key)


def _overrun(row: ScenarioRow, overrun: Overrun) -> _Draft:
    figures = f"observed {overrun.observed} ({overrun.over_by})"
    observed = figures if overrun.is_measured else NOT_MEASURED
    return _Draft(
        place=row.place,
        level="failure" if overrun.gates else "warning",
        title=f"{row.name.title}: over budget, {overrun.label}",
        message=f"{overrun.strength} limit {overrun.limit}, {observed}",
        kind="budget",
        key=row.key,
    )


def _test(test: FailingTest) -> _Draft:
    case, message = test.case, test.case.message or NO_REASON
    return _Draft(test.place, "failure", case.title, message, case.detail, kind="test")


def _level(row: ScenarioRow, *, missed: bool) -> Level:
    """Return the level of the scenario's failures; `missed`: evaluations miss a threshold."""
    if row.is_only_measured:
        return "warning" if missed else "notice"
    # A scenario that reaches its pass rate with failed iterations does not gate.
    return "failure" if row.is_required and not row.is_passing else "warning"
