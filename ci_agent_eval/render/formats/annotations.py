"""Annotations: what failed, at the line that made it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from ci_agent_eval.analysis.loaded_results import JUnitCase
from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render.baseline_findings import doubts
from ci_agent_eval.render.comparison import Key, comparison_of, key_of, notes
from ci_agent_eval.render.escape import cut_bytes, many_lines, visible_line
from ci_agent_eval.render.known import known_rows
from ci_agent_eval.render.links import line_number, repository_path
from ci_agent_eval.render.numbers import NOT_MEASURED
from ci_agent_eval.render.overruns import Overrun, overruns
from ci_agent_eval.render.views import (
    NO_REASON,
    Cause,
    cause_of,
    causes,
    error_cause,
    of,
    reason_of,
    title_of,
)

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

    file: str | None
    line: int | None
    level: Level
    title: str
    message: str
    details: str | None = None
    newly: bool = False
    """It did not fail in the baseline."""
    kind: AnnotationKind = "failed"
    key: Key | None = None
    """The scenario it is about; None: it is about something else."""


def annotations(report: Report) -> tuple[Annotation, ...]:
    """Return every annotation that has a file to stand in: failures first, of them the new ones."""
    return tuple(annotation for _, annotation in _ordered(report))


def by_importance(report: Report) -> tuple[Annotation, ...]:
    """Return the same annotations with the first of each scenario before all others."""
    first: list[Annotation] = []
    others: list[Annotation] = []
    seen: set[Key] = set()
    for key, annotation in _ordered(report):
        (others if key in seen else first).append(annotation)
        if key is not None:
            seen.add(key)
    return (*first, *others)


def noted(report: Report) -> tuple[tuple[AnnotationKind, Annotation], ...]:
    """Return every annotation with its kind, in order; one without a place has an empty path."""
    found = [(draft.kind, draft.newly, _placed(draft)) for draft in _drafts(report)]
    ordered = sorted(found, key=lambda item: (_order((not item[1], item[2])), item[0]))
    return tuple((kind, annotation) for kind, _, annotation in ordered)


def render_annotations(shown: Sequence[Annotation]) -> str:
    """Return `annotations.json`: a list in the same order, for other tools to place."""
    listed = [asdict(annotation) for annotation in shown]
    return json.dumps(listed, indent=2, sort_keys=True) + "\n"


def unplaced(report: Report) -> int:
    """Count what would be annotated if it named a file inside the repository."""
    return sum(1 for draft in _drafts(report) if repository_path(draft.file) is None)


def _ordered(report: Report) -> list[tuple[Key | None, Annotation]]:
    """Return the annotations that have a place in their order, each with its scenario."""
    placed = [
        (draft.newly, draft.key, annotation)
        for draft in _drafts(report)
        if (annotation := _place(draft)) is not None
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


def _place(draft: _Draft) -> Annotation | None:
    return None if repository_path(draft.file) is None else _placed(draft)


def _placed(draft: _Draft) -> Annotation:
    line = line_number(draft.line) or 1
    return Annotation(
        path=repository_path(draft.file) or "",
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


def _drafts(report: Report) -> Iterator[_Draft]:
    told, new, missed = notes(report), _newly_failing(report), report.misses_thresholds
    for item in report.judged_scenarios():
        key = key_of(item.scenario)
        level = _level(item, missed=missed)
        for draft in _scenario(item, level, told.get(key, ""), newly=key in new):
            yield replace(draft, key=key)
    yield from _doubts(report)
    yield from _known(report)
    for overrun in overruns(report):
        if overrun.scenario is not None:
            yield _overrun(overrun)
    for case in report.summary.tests.failing:
        yield _test(case)


def _newly_failing(report: Report) -> set[Key]:
    found = comparison_of(report)
    return set() if found is None else {key_of(s) for s in found.with_change("newly_failing")}


def _doubts(report: Report) -> Iterator[_Draft]:
    """Yield what the baseline speaks against and no failure says; not all of it has a file."""
    places = {key_of(scenario): scenario for scenario in report.summary.scenarios}
    for doubt in doubts(report):
        place = None if doubt.key is None else places.get(doubt.key)
        told = f"{doubt.what}: {doubt.quoted}" if doubt.quoted else doubt.what
        figures = f"{doubt.now} now, {doubt.before} before"
        yield _Draft(
            file=place.file if place else None,
            line=place.line if place else None,
            level="failure" if doubt.gates else "warning",
            title=f"{doubt.reason.scenario_id or 'suite'}: against the baseline",
            message=f"{told}\n{'' if doubt.scenario is None else 'passes '}{figures}",
            newly=True,
            kind="baseline",
            key=doubt.key,
        )


def _known(report: Report) -> Iterator[_Draft]:
    """Yield how the run differs from lines of the scenario manifest, at those lines."""
    found = report.summary.known
    for row in known_rows(report) if found else ():
        if row.line and found:
            yield _Draft(
                file=found.name,
                line=row.line,
                level="failure" if row.gates else "warning",
                title=f"{row.scenario_id}: known scenario",
                message=f"{row.what} {row.detail}".rstrip(),
                kind="known",
            )


def _scenario(item: JudgedScenario, level: Level, note: str, *, newly: bool) -> Iterator[_Draft]:
    scenario = item.scenario
    if scenario.tally.failed:
        for cause in causes(scenario):
            yield replace(_cause(item, cause, level, note), newly=newly)
    if scenario.tally.error:
        title = f"{title_of(scenario)}: {of(scenario.tally.error, scenario.tally.ran)} errors"
        cause = error_cause(scenario)
        # An error is no measurement: it weighs more than one that went badly.
        worse: Level = "warning" if level == "notice" else level
        reason = cause.reason or NO_REASON
        yield _Draft(cause.file, cause.line, worse, title, reason, kind="error")
    for failed in scenario.warnings:
        yield replace(_cause(item, cause_of(scenario, failed), "warning"), kind="warning")


def _cause(item: JudgedScenario, cause: Cause, level: Level, note: str = "") -> _Draft:
    scenario = item.scenario
    title = f"{title_of(scenario)}: {cause.name or 'failed'}"
    passes = f"passes {of(scenario.tally.passed, scenario.tally.judged)}"
    message = f"{reason_of(cause)}\n{passes}"
    if note:
        message = f"{message}, {note}"
    return _Draft(cause.file, cause.line, level, title, message)


def _overrun(overrun: Overrun) -> _Draft:
    scenario = overrun.scenario
    name = overrun.label or overrun.custom
    measured = overrun.observed != NOT_MEASURED
    observed = f"observed {overrun.observed} ({overrun.over_by})" if measured else NOT_MEASURED
    message = f"{overrun.strength} limit {overrun.limit}, {observed}"
    return _Draft(
        file=scenario.file if scenario else None,
        line=scenario.line if scenario else None,
        level="failure" if overrun.gates else "warning",
        title=f"{title_of(scenario) if scenario else 'suite'}: over budget, {name}",
        message=message,
        kind="budget",
        key=key_of(scenario) if scenario else None,
    )


def _test(case: JUnitCase) -> _Draft:
    message = case.message or NO_REASON
    return _Draft(case.file, case.line, "failure", case.title, message, case.detail, kind="test")


def _level(item: JudgedScenario, *, missed: bool) -> Level:
    """Return how much a failure of the scenario weighs; `missed`: evaluations miss a threshold."""
    if item.only_measures:
        return "warning" if missed else "notice"
    # A scenario that reaches its pass rate with failed iterations does not gate.
    gates = item.scenario.gate == "required" and not item.is_passing
    return "failure" if gates else "warning"
