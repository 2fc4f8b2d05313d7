"""The report for a terminal: what fails, what is over budget, what was found, the verdict last."""

from __future__ import annotations

from collections.abc import Iterator

from ci_agent_eval.gate.report import JudgedScenario, Report
from ci_agent_eval.render.comparison import (
    base_line,
    comparison_of,
    figure_rows,
    key_of,
    method,
    notes,
)
from ci_agent_eval.render.escape import terminal, without_commands
from ci_agent_eval.render.headline import headline
from ci_agent_eval.render.known import is_gating, known_advice, known_rows
from ci_agent_eval.render.markdown.waivers import acceptances, acceptances_title, quarantine_title
from ci_agent_eval.render.numbers import count
from ci_agent_eval.render.overruns import overruns
from ci_agent_eval.render.sentences import finding_sentence
from ci_agent_eval.render.terminal import baseline
from ci_agent_eval.render.terminal import entries as entry
from ci_agent_eval.render.terminal.entries import WHOLE_LIMIT
from ci_agent_eval.render.terminal.layout import (
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
    causes,
    evaluations_title,
    evidence,
    finding_name,
    findings_of,
    flaky,
    repeated,
    skipped_scenarios,
)

MIN_WIDTH = 40


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
    errored = [item for item in report.judged_scenarios() if item.scenario.tally.error]
    unproven = [item for item in report.judged_scenarios() if not item.scenario.needs_evidence]
    over = overruns(report)
    gating = [overrun for overrun in over if overrun.gates]
    soft = [overrun for overrun in over if not overrun.gates]
    told = notes(report)

    def failed(item: JudgedScenario) -> Entry:
        return entry.failing(item, told.get(key_of(item.scenario), ""))

    yield block("Failing scenarios", failing, failed, paper, RED)
    yield baseline.against(report, paper)
    yield block("Failing tests", report.summary.tests.failing, entry.test, paper, RED)
    yield block("Over budget", gating, entry.overrun, paper, RED)
    yield block("Ended in an error, not judged", errored, entry.errored, paper, RED)
    yield block("Skipped scenarios", skipped_scenarios(report), entry.skipped, paper, YELLOW)
    yield _known(report, paper)
    yield block("Over a budget that does not gate", soft, entry.overrun, paper, YELLOW)
    yield _evaluations(report, paper)
    yield block("Failing, but advisory", advisory, failed, paper, YELLOW)
    yield _quarantine(report, paper)
    yield titled(acceptances_title(report), acceptances(report), entry.accepted, paper, YELLOW)
    yield from baseline.changes(report, paper)
    yield _findings(report, paper)
    yield block("Passed, and need no evidence", unproven, entry.unproven, paper, YELLOW)
    yield block("Flaky: passed only on a retry", flaky(report), entry.flaky, paper, YELLOW)
    yield block("Iterations", repeated(report), entry.iterations, paper, DIM, heading=entry.USED)


def _quarantine(report: Report, paper: Paper) -> str:
    code = YELLOW if all(item.scenario.in_quarantine for item in report.quarantined) else RED
    return titled(quarantine_title(report), report.quarantined, entry.quarantined, paper, code)


def _known(report: Report, paper: Paper) -> str:
    found = known_rows(report)
    code = RED if is_gating(found) else YELLOW
    shown = block("Known scenarios", found, entry.known, paper, code)
    advice = known_advice(report).replace("`", "")
    return f"{shown}\n  {advice}" if shown and advice else shown


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
    return "\n".join([*lines, *entries(found, entry.measured, paper)])


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
        said = terminal(finding_sentence(finding), WHOLE_LIMIT)
        text = f"{finding_name(finding)}{where}{note}: {said}"
        lines += [f"  {line}" for line in wrapped(text, paper.width - 2)]
    if (rest := len(found.told) - MOST_LINES) > 0:
        lines.append(f"  and {count(rest)} more, in verdict.json")
    if found.consequences:
        lines.append(f"  and {found.summary}, in verdict.json")
    return "\n".join(lines)


def _ending(report: Report, paper: Paper) -> Iterator[str]:
    found = figure_rows(report)
    yield from baseline.figures(found, is_compared=comparison_of(report) is not None)
    if found:
        yield ""
    base = base_line(report)
    parts = (
        evidence(report) if base is None else (*evidence(report), f"{base[0]} {terminal(base[1])}")
    )
    yield from wrapped(" · ".join(parts), paper.width)
    if (compared := comparison_of(report)) is not None:
        yield from wrapped(method(compared), paper.width)
    sentence = wrapped(headline(report), paper.width)
    for line in sentence:
        yield paper.paint(line, f"{BOLD};{GREEN if report.passed else RED}")
