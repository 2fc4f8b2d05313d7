"""The report for a terminal: failures, budgets, findings, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator

from ci_agent_eval.render.escape import terminal, without_commands
from ci_agent_eval.render.numbers import count
from ci_agent_eval.render.report_view import ReportView
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
    Paper,
    block,
    entries,
    titled,
    wrapped,
)

MIN_WIDTH = 40


def render_terminal(view: ReportView, *, color: bool, width: int) -> str:
    """Return the report as lines of about `width` characters; colour adds nothing but colour."""
    paper = Paper(max(width, MIN_WIDTH), color)
    blocks = [text for text in _blocks(view, paper) if text]
    blocks.append("\n".join(_ending(view, paper)))
    # Wrapping may have moved a command to the start of a line.
    return without_commands("\n\n".join(blocks)) + "\n"


def _blocks(view: ReportView, paper: Paper) -> Iterator[str]:
    unproven = [row for row in view.scenarios if not row.scenario.needs_evidence]
    gating = [pair for pair in view.overruns if pair[1].gates]
    soft = [pair for pair in view.overruns if not pair[1].gates]
    yield block("Failing scenarios", view.failing, entry.failing, paper, RED)
    yield baseline.against(view, paper)
    yield block("Failing tests", view.failing_tests, entry.test, paper, RED)
    yield block("Over budget", gating, entry.overrun, paper, RED)
    yield block("Ended in an error, not judged", view.errored, entry.errored, paper, RED)
    yield block("Skipped scenarios", view.skipped, entry.skipped, paper, YELLOW)
    yield _known(view, paper)
    yield block("Over a budget that does not gate", soft, entry.overrun, paper, YELLOW)
    yield _evaluations(view, paper)
    yield block("Failing, but advisory", view.failing_advisory, entry.failing, paper, YELLOW)
    yield _quarantine(view, paper)
    yield titled(view.acknowledged_title, view.acknowledged, entry.accepted, paper, YELLOW)
    yield from baseline.changes(view, paper)
    yield _findings(view, paper)
    yield block("Passed, and need no evidence", unproven, entry.unproven, paper, YELLOW)
    yield block("Flaky: passed only on a retry", view.flaky, entry.flaky, paper, YELLOW)
    yield block("Iterations", view.repeated, entry.iterations, paper, DIM, heading=entry.USED)


def _quarantine(view: ReportView, paper: Paper) -> str:
    code = YELLOW if all(item.is_active for item in view.quarantined) else RED
    return titled(view.quarantine_title, view.quarantined, entry.quarantined, paper, code)


def _known(view: ReportView, paper: Paper) -> str:
    code = RED if any(row.gates for row in view.known) else YELLOW
    shown = block("Known scenarios", view.known, entry.known, paper, code)
    advice = view.known_advice.replace("`", "")
    return f"{shown}\n  {advice}" if shown and advice else shown


def _evaluations(view: ReportView, paper: Paper) -> str:
    """Return the title of the evaluations, then each assertion that failed in one."""
    if not view.evaluations:
        return ""
    found = [pair for pair in view.failures if pair[0].is_evaluation]
    code = RED if view.misses_thresholds else YELLOW if found else GREEN
    lines = (
        paper.paint(line, f"{BOLD};{code}") for line in wrapped(view.evaluations_title, paper.width)
    )
    return "\n".join([*lines, *entries(found, entry.measured, paper)])


def _findings(view: ReportView, paper: Paper) -> str:
    found = view.findings
    if not found.shown:
        return ""
    code = RED if found.shown[0].blocking else YELLOW
    title = f"Findings about the result files ({count(len(found))})"
    lines = [paper.paint(title, f"{BOLD};{code}")]
    for row in found.shown[:MOST_LINES]:
        note = "" if row.blocking else " (does not gate)"
        where = f" in {terminal(row.where)}" if row.where else ""
        text = f"{row.name}{where}{note}: {terminal(row.sentence, WHOLE_LIMIT)}"
        lines += [f"  {line}" for line in wrapped(text, paper.width - 2)]
    if (rest := len(found.shown) - MOST_LINES) > 0:
        lines.append(f"  and {count(rest)} more, in verdict.json")
    if found.consequences:
        lines.append(f"  and {found.summary}, in verdict.json")
    return "\n".join(lines)


def _ending(view: ReportView, paper: Paper) -> Iterator[str]:
    found = view.compared_figures
    yield from baseline.figures(found, is_compared=view.comparison is not None)
    if found:
        yield ""
    base = [] if view.base is None else [f"{view.base[0]} {terminal(view.base[1])}"]
    yield from wrapped(" · ".join([*view.evidence, *base]), paper.width)
    if view.comparison is not None:
        yield from wrapped(view.comparison.method, paper.width)
    for line in wrapped(view.headline, paper.width):
        yield paper.paint(line, f"{BOLD};{GREEN if view.passed else RED}")
