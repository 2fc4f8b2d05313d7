"""The report for a terminal: what fails, what is over budget, what was found, the verdict last."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ci_agent_eval.comparison.model import ScenarioComparison
from ci_agent_eval.comparison.remarks import aside
from ci_agent_eval.facts import JUnitCase
from ci_agent_eval.gate import Reason
from ci_agent_eval.render.agreed import acceptances, quarantine_title, until
from ci_agent_eval.render.compared import (
    CHANGES,
    PATH_STEPS,
    Doubt,
    FigureRow,
    base_line,
    comparison_of,
    doubts,
    figure_rows,
    method,
    moved,
    passes_of,
    shifted,
)
from ci_agent_eval.render.escape import terminal, without_commands
from ci_agent_eval.render.headline import headline
from ci_agent_eval.render.links import line_number
from ci_agent_eval.render.numbers import (
    ABSENT,
    NOT_MEASURED,
    count,
    counted,
    milliseconds,
    money,
    score,
)
from ci_agent_eval.render.views import (
    FINDING_KINDS,
    Cause,
    Flaky,
    Overrun,
    causes,
    error_cause,
    evaluations_title,
    evidence,
    first_cause,
    flaky,
    overruns,
    rate_of,
    repeated,
    title_of,
)
from ci_agent_eval.report import Judged, Report

T = TypeVar("T")

MIN_WIDTH = 40
MIN_TEXT = 30
"""With less room than this a text starts on a line of its own."""
MOST_LINES = 50
"""Of one section; the rest is counted."""
NAME_LIMIT = 60
WHOLE_LIMIT = 1_000
"""Of a sentence that says what to do."""

_RED, _GREEN, _YELLOW, _BOLD, _DIM = "31", "32", "33", "1", "2"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One thing to say: what it is about, a figure, and a text that may be long."""

    name: str
    figure: str
    text: str
    place: str = ""


@dataclass(frozen=True, slots=True)
class _Paper:
    """How wide to write, and whether in colour."""

    width: int
    color: bool

    def paint(self, text: str, code: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text


def render_terminal(report: Report, *, color: bool, width: int) -> str:
    """Return the report as lines of about `width` characters; colour adds nothing but colour."""
    paper = _Paper(max(width, MIN_WIDTH), color)
    blocks = [block for block in _blocks(report, paper) if block]
    blocks.append("\n".join(_ending(report, paper)))
    # Wrapping may have moved a command to the start of a line.
    return without_commands("\n\n".join(blocks)) + "\n"


def _blocks(report: Report, paper: _Paper) -> Iterator[str]:
    failing = [item for item in report.required if item.judgement.status == "failing"]
    advisory = [item for item in report.advisory if item.judgement.status == "failing"]
    errored = [item for item in report.judged() if item.scenario.tally.error]
    skipped = [item for item in report.judged() if item.judgement.status == "skipped"]
    over = overruns(report)
    gating = [overrun for overrun in over if overrun.gates]
    soft = [overrun for overrun in over if not overrun.gates]
    yield _block("Failing scenarios", failing, _failing, paper, _RED)
    yield _block("Against the baseline", doubts(report), _doubt, paper, _doubt_color(report))
    yield _block("Failing tests", report.summary.tests.failing, _test, paper, _RED)
    yield _block("Over budget", gating, _overrun, paper, _RED)
    yield _block("Ended in an error, not judged", errored, _error, paper, _RED)
    yield _block("Skipped scenarios", skipped, _skipped, paper, _YELLOW)
    yield _block("Over a budget that does not gate", soft, _overrun, paper, _YELLOW)
    yield _evaluations(report, paper)
    yield _block("Failing, but advisory", advisory, _failing, paper, _YELLOW)
    yield _quarantine(report, paper)
    yield _block("Acknowledged, not gating", acceptances(report), _accepted, paper, _YELLOW)
    yield from _comparison(report, paper)
    yield _findings(report, paper)
    yield _block("Flaky: passed only on a retry", flaky(report), _flaky, paper, _YELLOW)
    yield _block("Iterations", repeated(report), _iterations, paper, _DIM)


def _quarantine(report: Report, paper: _Paper) -> str:
    if not report.quarantined:
        return ""
    code = _YELLOW if all(item.scenario.in_quarantine for item in report.quarantined) else _RED
    heading = [
        paper.paint(line, f"{_BOLD};{code}")
        for line in _wrapped(quarantine_title(report), paper.width)
    ]
    return "\n".join([*heading, *_entries(report.quarantined, _quarantined, paper)])


def _quarantined(item: Judged) -> _Entry:
    agreed = item.scenario.quarantine
    assert agreed is not None, "only what is in quarantine is shown"  # noqa: S101 - see above
    owner, reason = terminal(agreed.owner or "", NAME_LIMIT), terminal(agreed.reason)
    text = f"until {until(agreed)}; owner {owner}: {reason}"
    return _Entry(_name(item), _passes(item), text, _place(item.scenario.file, item.scenario.line))


def _accepted(reason: Reason) -> _Entry:
    name = "" if reason.scenario_id is None else terminal(reason.scenario_id, NAME_LIMIT)
    agent = f" (agent {terminal(reason.agent, NAME_LIMIT)})" if reason.agent else ""
    return _Entry(name + agent, "", terminal(reason.message, WHOLE_LIMIT))


def _flaky(found: Flaky) -> _Entry:
    times = counted(found.iterations, "iteration") if found.iterations else "test"
    return _Entry(terminal(found.title, NAME_LIMIT), times, _place(found.file, found.line))


def _doubt_color(report: Report) -> str:
    return _RED if any(doubt.gates for doubt in doubts(report)) else _YELLOW


def _doubt(doubt: Doubt) -> _Entry:
    before, now = passes_of(doubt.scenario)
    name = terminal(doubt.scenario.scenario_id, NAME_LIMIT)
    if doubt.scenario.agent is not None:
        name = f"{name} (agent {terminal(doubt.scenario.agent, NAME_LIMIT)})"
    return _Entry(name, f"{before} -> {now}", doubt.what)


def _way(scenario: ScenarioComparison) -> _Entry:
    parted = scenario.divergence
    assert parted is not None, "only what took another way is shown"  # noqa: S101 - see shifted
    argument = f", argument {terminal(parted.argument)}" if parted.argument else ""
    ways = (
        " -> ".join(names[:PATH_STEPS]) or "no tool call" for names in (parted.before, parted.after)
    )
    before, after = (terminal(way, WHOLE_LIMIT) for way in ways)
    text = before if before == after else f"was {before}; is {after}"
    place = f"turn {parted.turn}, call {parted.call}{argument}"
    return _Entry(terminal(scenario.scenario_id, NAME_LIMIT), place, text)


def _moved(scenario: ScenarioComparison) -> _Entry:
    before, now = passes_of(scenario)
    differences = "; ".join(
        f"{d.condition} was {d.before}, is {d.after}" for d in scenario.differences
    )
    if differences and scenario.change != "not_comparable":
        differences = f"{aside(scenario)}: {differences}"
    over = f"newly over budget: {', '.join(scenario.newly_over)}" if scenario.newly_over else ""
    was = f"was {scenario.renamed_from}" if scenario.renamed_from else ""
    text = "; ".join(part for part in (differences, over, was) if part)
    name = terminal(scenario.scenario_id, NAME_LIMIT)
    shown = terminal(text) if text else ""
    return _Entry(name, f"{CHANGES[scenario.change]}, {before} -> {now}", shown)


def _comparison(report: Report, paper: _Paper) -> Iterator[str]:
    found = comparison_of(report)
    if found is not None:
        yield _block("What changed", shifted(found), _way, paper, _DIM)
        yield _block("Since the baseline", moved(found), _moved, paper, _DIM)


def _block(
    title: str, found: Sequence[T], entry: Callable[[T], _Entry], paper: _Paper, code: str
) -> str:
    if not found:
        return ""
    heading = paper.paint(f"{title} ({count(len(found))})", f"{_BOLD};{code}")
    return "\n".join([heading, *_entries(found, entry, paper)])


def _entries(found: Sequence[T], entry: Callable[[T], _Entry], paper: _Paper) -> Sequence[str]:
    entries = [entry(item) for item in found[:MOST_LINES]]
    names = max((len(entry.name) for entry in entries), default=0)
    figure_width = max((len(entry.figure) for entry in entries), default=0)
    lines: list[str] = []
    for item in entries:
        lines += _entry(item, names, figure_width, paper)
    if rest := len(found) - len(entries):
        lines.append(f"  and {count(rest)} more, in verdict.json")
    return lines


def _evaluations(report: Report, paper: _Paper) -> str:
    """Say what the evaluations came to, then each assertion that failed in one."""
    if not report.evaluations:
        return ""
    found = [
        (item, cause)
        for item in report.evaluations
        if item.scenario.tally.failed
        for cause in causes(item.scenario)
    ]
    code = _RED if report.misses_thresholds else _YELLOW if found else _GREEN
    heading = [
        paper.paint(line, f"{_BOLD};{code}")
        for line in _wrapped(evaluations_title(report), paper.width)
    ]
    return "\n".join([*heading, *_entries(found, _measured, paper)])


def _measured(pair: tuple[Judged, Cause]) -> _Entry:
    item, cause = pair
    found = item.scenario.evaluations
    mean = ABSENT if found.mean_score is None else score(found.mean_score)
    times = f", {count(cause.iterations)}x" if cause.iterations and cause.iterations > 1 else ""
    return _Entry(_name(item), f"score {mean}{times}", _text(cause), _place(cause.file, cause.line))


def _entry(item: _Entry, names: int, figures_: int, paper: _Paper) -> Iterator[str]:
    head = f"  {item.name:<{names}}  {item.figure:<{figures_}}".rstrip()
    start = 2 + names + 2 + (figures_ + 2 if figures_ else 0)
    if paper.width - start < MIN_TEXT:
        start = 6
        yield head
        head = ""
    texts = [*_wrapped(item.text, paper.width - start)]
    for number, line in enumerate(texts):
        yield f"{head if number == 0 else '':<{start}}{line}".rstrip()
    if item.place:
        yield paper.paint(f"{'':<{start}}{item.place}", _DIM)


def _wrapped(text: str, width: int) -> Sequence[str]:
    return textwrap.wrap(text, width, break_on_hyphens=False) or [""]


def _failing(item: Judged) -> _Entry:
    cause = first_cause(item.scenario)
    return _Entry(_name(item), _passes(item), _text(cause), _place(cause.file, cause.line))


def _iterations(item: Judged) -> _Entry:
    scenario, used = item.scenario, []
    if scenario.duration_ms is not None:
        used.append(milliseconds(scenario.duration_ms))
    if scenario.tokens is not None:
        used.append(counted(scenario.tokens, "token"))
    if scenario.cost_usd is not None:
        used.append(money(scenario.cost_usd))
    return _Entry(_name(item), _passes(item), ", ".join(used))


def _passes(item: Judged) -> str:
    tally = item.scenario.tally
    passes = f"{count(tally.passed)}/{count(tally.judged)}"
    return f"{passes}, {rate_of(item.scenario)}" if tally.judged > 1 else passes


def _error(item: Judged) -> _Entry:
    tally = item.scenario.tally
    cause = error_cause(item.scenario)
    errors = f"{count(tally.error)}/{count(tally.ran)}"
    return _Entry(_name(item), errors, _text(cause), _place(cause.file, cause.line))


def _skipped(item: Judged) -> _Entry:
    cause = error_cause(item.scenario)
    return _Entry(_name(item), "", _text(cause), _place(cause.file, cause.line))


def _test(case: JUnitCase) -> _Entry:
    message = terminal(case.message) if case.message else ""
    return _Entry(
        terminal(case.title, NAME_LIMIT), case.outcome, message, _place(case.file, case.line)
    )


def _overrun(overrun: Overrun) -> _Entry:
    scenario = overrun.scenario
    name = terminal(title_of(scenario), NAME_LIMIT) if scenario else "the whole suite"
    label = overrun.label or terminal(overrun.custom, NAME_LIMIT)
    over = "" if overrun.observed == NOT_MEASURED else f" ({overrun.over_by})"
    text = f"{overrun.observed}, limit {overrun.limit}{over}"
    return _Entry(name, f"{label} ({overrun.strength})", text)


def _name(item: Judged) -> str:
    return terminal(title_of(item.scenario), NAME_LIMIT)


def _text(cause: Cause) -> str:
    return ": ".join(terminal(text) for text in (cause.name, cause.reason) if text)


def _place(file: str | None, line: int | None) -> str:
    if not file:
        return ""
    number = line_number(line)
    return terminal(f"{file}:{number}" if number else file)


def _findings(report: Report, paper: _Paper) -> str:
    found = sorted(report.summary.findings, key=lambda finding: not finding.blocking)
    if not found:
        return ""
    code = _RED if found[0].blocking else _YELLOW
    lines = [
        paper.paint(f"Findings about the result files ({count(len(found))})", f"{_BOLD};{code}")
    ]
    for finding in found[:MOST_LINES]:
        note = "" if finding.blocking else " (does not gate)"
        where = f"{FINDING_KINDS[finding.kind]} in {terminal(finding.where)}{note}"
        text = f"{where}: {terminal(finding.message, WHOLE_LIMIT)}"
        lines += [f"  {line}" for line in _wrapped(text, paper.width - 2)]
    if rest := len(found) - MOST_LINES:
        lines += [f"  and {count(rest)} more, in verdict.json"] if rest > 0 else []
    return "\n".join(lines)


def _ending(report: Report, paper: _Paper) -> Iterator[str]:
    found = figure_rows(report)
    yield from _figures(found, is_compared=comparison_of(report) is not None)
    if found:
        yield ""
    base = base_line(report)
    parts = evidence(report) if base is None else (*evidence(report), _base(*base))
    yield from _wrapped(" · ".join(parts), paper.width)
    if (compared := comparison_of(report)) is not None:
        yield from _wrapped(method(compared), paper.width)
    sentence = _wrapped(headline(report), paper.width)
    for line in sentence:
        yield paper.paint(line, f"{_BOLD};{_GREEN if report.passed else _RED}")


def _base(words: str, label: str) -> str:
    return f"{words} {terminal(label)}"


def _figures(rows: Sequence[FigureRow], *, is_compared: bool) -> Iterator[str]:
    columns = [("", *(row.label for row in rows)), ("", *(row.value for row in rows))]
    if is_compared:
        columns[1] = ("now", *(row.value for row in rows))
        columns.append(("before", *(row.before for row in rows)))
        columns.append(("change", *(row.change for row in rows)))
    widths = [max(map(len, column), default=0) for column in columns]
    lines = list(zip(*columns, strict=True))
    for label, *values in lines if is_compared else lines[1:]:
        shown = [f"{value:>{width}}" for value, width in zip(values, widths[1:], strict=True)]
        yield "  ".join(["", f"{label:<{widths[0]}}", *shown])
