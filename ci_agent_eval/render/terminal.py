"""The report for a terminal: what fails, what is over budget, what was found, the verdict last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ci_agent_eval.comparison.model import ScenarioComparison
from ci_agent_eval.comparison.remarks import aside
from ci_agent_eval.facts import JUnitCase
from ci_agent_eval.gate import Reason
from ci_agent_eval.render.agreed import (
    acceptances,
    acceptances_title,
    hard_overruns,
    quarantine_title,
    until,
)
from ci_agent_eval.render.compared import (
    FigureRow,
    base_line,
    change_of,
    comparison_of,
    figure_rows,
    key_of,
    method,
    moved,
    notes,
    passes_of,
)
from ci_agent_eval.render.doubts import Doubt, doubts
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
from ci_agent_eval.render.paper import (
    BOLD,
    DIM,
    GREEN,
    MOST_LINES,
    RED,
    YELLOW,
    Entry,
    Paper,
    block,
    entries,
    titled,
    wrapped,
)
from ci_agent_eval.render.views import (
    Cause,
    Flaky,
    Overrun,
    causes,
    error_cause,
    evaluations_title,
    evidence,
    finding_name,
    findings_of,
    first_cause,
    flaky,
    overruns,
    rate_of,
    repeated,
    title_of,
)
from ci_agent_eval.render.ways import (
    MOST_DETOURS,
    detours,
    place_of,
    sequence,
    shifted,
    ways_of,
)
from ci_agent_eval.report import Judged, Report

MIN_WIDTH = 40
NAME_LIMIT = 60
WHOLE_LIMIT = 1_000
"""Of a sentence that says what to do."""


def render_terminal(report: Report, *, color: bool, width: int) -> str:
    """Return the report as lines of about `width` characters; colour adds nothing but colour."""
    paper = Paper(max(width, MIN_WIDTH), color)
    blocks = [text for text in _blocks(report, paper) if text]
    blocks.append("\n".join(_ending(report, paper)))
    # Wrapping may have moved a command to the start of a line.
    return without_commands("\n\n".join(blocks)) + "\n"


def _blocks(report: Report, paper: Paper) -> Iterator[str]:
    failing = [item for item in report.required if item.judgement.status == "failing"]
    advisory = [item for item in report.advisory if item.judgement.status == "failing"]
    errored = [item for item in report.judged() if item.scenario.tally.error]
    skipped = [item for item in report.judged() if item.judgement.status == "skipped"]
    over = overruns(report)
    gating = [overrun for overrun in over if overrun.gates]
    soft = [overrun for overrun in over if not overrun.gates]
    told = notes(report)

    def failed(item: Judged) -> Entry:
        return _failing(item, told.get(key_of(item.scenario), ""))

    yield block("Failing scenarios", failing, failed, paper, RED)
    yield block("Against the baseline", doubts(report), _doubt, paper, _doubt_color(report))
    yield block("Failing tests", report.summary.tests.failing, _test, paper, RED)
    yield block("Over budget", gating, _overrun, paper, RED)
    yield block("Ended in an error, not judged", errored, _error, paper, RED)
    yield block("Skipped scenarios", skipped, _skipped, paper, YELLOW)
    yield block("Over a budget that does not gate", soft, _overrun, paper, YELLOW)
    yield _evaluations(report, paper)
    yield block("Failing, but advisory", advisory, failed, paper, YELLOW)
    yield _quarantine(report, paper)
    yield titled(acceptances_title(report), acceptances(report), _accepted, paper, YELLOW)
    yield from _comparison(report, paper)
    yield _findings(report, paper)
    yield block("Flaky: passed only on a retry", flaky(report), _flaky, paper, YELLOW)
    yield block("Iterations", repeated(report), _iterations, paper, DIM, heading=_USED)


def _quarantine(report: Report, paper: Paper) -> str:
    code = YELLOW if all(item.scenario.in_quarantine for item in report.quarantined) else RED
    return titled(quarantine_title(report), report.quarantined, _quarantined, paper, code)


def _quarantined(item: Judged) -> Entry:
    agreed = item.scenario.quarantine
    assert agreed is not None, "only what is in quarantine is shown"  # noqa: S101 - see above
    owner, reason = terminal(agreed.owner or "", NAME_LIMIT), terminal(agreed.reason)
    over = [terminal(name, NAME_LIMIT) for name in hard_overruns(item.scenario)]
    why = f"over budget: {', '.join(over)}; " if over and item.passing else ""
    text = f"{why}until {until(agreed)}; owner {owner}: {reason}"
    return Entry(_name(item), _passes(item), text, _place(item.scenario.file, item.scenario.line))


def _accepted(reason: Reason) -> Entry:
    name = "" if reason.scenario_id is None else terminal(reason.scenario_id, NAME_LIMIT)
    agent = f" (agent {terminal(reason.agent, NAME_LIMIT)})" if reason.agent else ""
    return Entry(name + agent, "", terminal(reason.message, WHOLE_LIMIT))


def _flaky(found: Flaky) -> Entry:
    times = counted(found.iterations, "iteration") if found.iterations else "test"
    return Entry(terminal(found.title, NAME_LIMIT), times, _place(found.file, found.line))


def _doubt_color(report: Report) -> str:
    return RED if any(doubt.gates for doubt in doubts(report)) else YELLOW


def _doubt(doubt: Doubt) -> Entry:
    about, agent = doubt.reason.scenario_id, doubt.reason.agent
    name = "the whole suite" if about is None else terminal(about, NAME_LIMIT)
    if agent is not None:
        name = f"{name} (agent {terminal(agent, NAME_LIMIT)})"
    quoted = f": {terminal(doubt.quoted)}" if doubt.quoted else ""
    return Entry(name, f"{doubt.before} -> {doubt.now}", doubt.what + quoted)


def _way(scenario: ScenarioComparison) -> Entry:
    parted = scenario.divergence
    assert parted is not None, "only what took another way is shown"  # noqa: S101 - see shifted
    argument = f", argument {terminal(parted.argument)}" if parted.argument else ""
    before, after = (
        terminal(sequence(names, parted.call, " -> "), WHOLE_LIMIT) for names in ways_of(parted)
    )
    text = before if before == after else f"was {before}; is {after}"
    return Entry(terminal(scenario.scenario_id, NAME_LIMIT), f"{place_of(parted)}{argument}", text)


def _moved(scenario: ScenarioComparison) -> Entry:
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
    return Entry(name, f"{change_of(scenario)}, {before} -> {now}", shown)


def _comparison(report: Report, paper: Paper) -> Iterator[str]:
    found = comparison_of(report)
    if found is not None:
        yield block("What changed", shifted(found), _way, paper, DIM)
        other = detours(found)
        yield block("Pass by another way", other, _way, paper, DIM, most=MOST_DETOURS)
        yield block("Since the baseline", moved(found), _moved, paper, DIM)


def _evaluations(report: Report, paper: Paper) -> str:
    """Say what the evaluations came to, then each assertion that failed in one."""
    if not report.evaluations:
        return ""
    found = [
        (item, cause)
        for item in report.evaluations
        if item.scenario.tally.failed
        for cause in causes(item.scenario)
    ]
    code = RED if report.misses_thresholds else YELLOW if found else GREEN
    lines = (
        paper.paint(line, f"{BOLD};{code}")
        for line in wrapped(evaluations_title(report), paper.width)
    )
    return "\n".join([*lines, *entries(found, _measured, paper)])


def _measured(pair: tuple[Judged, Cause]) -> Entry:
    item, cause = pair
    found = item.scenario.evaluations
    mean = ABSENT if found.mean_score is None else score(found.mean_score)
    times = f", {count(cause.iterations)}x" if cause.iterations and cause.iterations > 1 else ""
    return Entry(_name(item), f"score {mean}{times}", _text(cause), _place(cause.file, cause.line))


def _failing(item: Judged, note: str) -> Entry:
    cause = first_cause(item.scenario)
    text = "; ".join(part for part in (note, _text(cause)) if part)
    return Entry(_name(item), _passes(item), text, _place(cause.file, cause.line))


_USED = Entry("scenario", "passes, pass rate", "duration, tokens, cost of all together")


def _iterations(item: Judged) -> Entry:
    scenario, used = item.scenario, []
    if scenario.duration_ms is not None:
        used.append(milliseconds(scenario.duration_ms))
    if scenario.tokens is not None:
        used.append(counted(scenario.tokens, "token"))
    if scenario.cost_usd is not None:
        used.append(money(scenario.cost_usd))
    return Entry(_name(item), _passes(item), ", ".join(used))


def _passes(item: Judged) -> str:
    tally = item.scenario.tally
    passes = f"{count(tally.passed)}/{count(tally.judged)}"
    return f"{passes}, {rate_of(item.scenario)}" if tally.judged > 1 else passes


def _error(item: Judged) -> Entry:
    tally = item.scenario.tally
    cause = error_cause(item.scenario)
    errors = f"{count(tally.error)}/{count(tally.ran)}"
    return Entry(_name(item), errors, _text(cause), _place(cause.file, cause.line))


def _skipped(item: Judged) -> Entry:
    cause = error_cause(item.scenario)
    return Entry(_name(item), "", _text(cause), _place(cause.file, cause.line))


def _test(case: JUnitCase) -> Entry:
    message = terminal(case.message) if case.message else ""
    return Entry(
        terminal(case.title, NAME_LIMIT), case.outcome, message, _place(case.file, case.line)
    )


def _overrun(overrun: Overrun) -> Entry:
    scenario = overrun.scenario
    name = terminal(title_of(scenario), NAME_LIMIT) if scenario else "the whole suite"
    label = overrun.label or terminal(overrun.custom, NAME_LIMIT)
    over = "" if overrun.observed == NOT_MEASURED else f" ({overrun.over_by})"
    text = f"{overrun.observed}, limit {overrun.limit}{over}"
    return Entry(name, f"{label} ({overrun.strength})", text)


def _name(item: Judged) -> str:
    return terminal(title_of(item.scenario), NAME_LIMIT)


def _text(cause: Cause) -> str:
    return ": ".join(terminal(text) for text in (cause.name, cause.reason) if text)


def _place(file: str | None, line: int | None) -> str:
    if not file:
        return ""
    number = line_number(line)
    return terminal(f"{file}:{number}" if number else file)


def _findings(report: Report, paper: Paper) -> str:
    found = findings_of(report)
    if not found.told:
        return ""
    code = RED if found.told[0].blocking else YELLOW
    total = count(len(found.told) + len(found.consequences))
    lines = [paper.paint(f"Findings about the result files ({total})", f"{BOLD};{code}")]
    for finding in found.told[:MOST_LINES]:
        note = "" if finding.blocking else " (does not gate)"
        where = f" in {terminal(finding.where)}" if finding.where else ""
        text = f"{finding_name(finding)}{where}{note}: {terminal(finding.message, WHOLE_LIMIT)}"
        lines += [f"  {line}" for line in wrapped(text, paper.width - 2)]
    if (rest := len(found.told) - MOST_LINES) > 0:
        lines.append(f"  and {count(rest)} more, in verdict.json")
    if found.consequences:
        lines.append(f"  and {found.summary}, in verdict.json")
    return "\n".join(lines)


def _ending(report: Report, paper: Paper) -> Iterator[str]:
    found = figure_rows(report)
    yield from _figures(found, is_compared=comparison_of(report) is not None)
    if found:
        yield ""
    base = base_line(report)
    parts = evidence(report) if base is None else (*evidence(report), _base(*base))
    yield from wrapped(" · ".join(parts), paper.width)
    if (compared := comparison_of(report)) is not None:
        yield from wrapped(method(compared), paper.width)
    sentence = wrapped(headline(report), paper.width)
    for line in sentence:
        yield paper.paint(line, f"{BOLD};{GREEN if report.passed else RED}")


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
