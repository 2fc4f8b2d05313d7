"""The report for a terminal: failures, budgets, findings, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator

from ci_agent_eval.render.escape import escape_terminal, without_commands
from ci_agent_eval.render.numbers import format_count
from ci_agent_eval.render.report_view import ReportView
from ci_agent_eval.render.terminal import comparison
from ci_agent_eval.render.terminal import entries as entry
from ci_agent_eval.render.terminal.entries import NAME_LIMIT, WHOLE_LIMIT
from ci_agent_eval.render.terminal.layout import (
    BOLD,
    DIM,
    GREEN,
    MOST_LINES,
    RED,
    YELLOW,
    TerminalStyle,
    render_block,
    render_entries,
    render_titled_block,
    wrap_text,
)

MIN_WIDTH = 40


def render_terminal(view: ReportView, *, color: bool, width: int) -> str:
    """Return the report as lines of about `width` characters; colour adds nothing but colour."""
    style = TerminalStyle(max(width, MIN_WIDTH), color)
    blocks = [text for text in _list_blocks(view, style) if text]
    blocks.append("\n".join(_list_ending(view, style)))
    # Wrapping may have moved a command to the start of a line.
    return without_commands("\n\n".join(blocks)) + "\n"


def _list_blocks(view: ReportView, style: TerminalStyle) -> Iterator[str]:
    unproven = [row for row in view.scenarios if not row.scenario.needs_evidence]
    gating = [pair for pair in view.overruns if pair[1].gates]
    soft = [pair for pair in view.overruns if not pair[1].gates]
    yield render_block("Failing scenarios", view.failing_scenarios, entry.build_failing, style, RED)
    yield comparison.render_findings(view, style)
    yield render_block("Failing tests", view.failing_tests, entry.build_test, style, RED)
    yield render_block("Over budget", gating, entry.build_overrun_entry, style, RED)
    yield render_block(
        "Ended in an error, not judged", view.errored_scenarios, entry.build_errored, style, RED
    )
    yield render_block(
        "Skipped scenarios", view.skipped_scenarios, entry.build_skipped, style, YELLOW
    )
    yield _render_differences(view, style)
    yield render_block(
        "Over a budget that does not gate", soft, entry.build_overrun_entry, style, YELLOW
    )
    yield _render_evaluations(view, style)
    yield render_block(
        "Failing, but advisory", view.failing_advisory_scenarios, entry.build_failing, style, YELLOW
    )
    yield _render_quarantine(view, style)
    yield render_titled_block(
        view.acknowledged_title, view.acknowledged, entry.build_acknowledged, style, YELLOW
    )
    yield from comparison.render_changes(view, style)
    yield _render_findings(view, style)
    yield render_block(
        "Passed, and need no evidence", unproven, entry.build_unproven, style, YELLOW
    )
    yield render_block(
        "Flaky: passed only on a retry", view.flaky_rows, entry.build_flaky, style, YELLOW
    )
    yield render_block(
        "Iterations",
        view.repeated_scenarios,
        entry.build_iterations,
        style,
        DIM,
        heading=entry.USED,
    )


def _render_quarantine(view: ReportView, style: TerminalStyle) -> str:
    code = YELLOW if all(item.is_active for item in view.quarantined) else RED
    return render_titled_block(
        view.quarantine_title, view.quarantined, entry.build_quarantined, style, code
    )


def _render_differences(view: ReportView, style: TerminalStyle) -> str:
    code = RED if any(row.gates for row in view.manifest_differences) else YELLOW
    shown = render_block(
        "Known scenarios", view.manifest_differences, entry.build_difference, style, code
    )
    advice = view.manifest_advice.replace("`", "")
    return f"{shown}\n  {advice}" if shown and advice else shown


def _render_evaluations(view: ReportView, style: TerminalStyle) -> str:
    """Return the title of the evaluations, then each assertion that failed in one."""
    if not view.evaluations:
        return ""
    found = [pair for pair in view.failures if pair[0].is_evaluation]
    code = RED if view.misses_thresholds else YELLOW if found else GREEN
    lines = (
        style.paint(line, f"{BOLD};{code}")
        for line in wrap_text(view.evaluations_title, style.width)
    )
    return "\n".join([*lines, *render_entries(found, entry.build_measured, style)])


def _render_findings(view: ReportView, style: TerminalStyle) -> str:
    found = view.findings
    if not found.shown:
        return ""
    code = RED if found.shown[0].gates else YELLOW
    title = f"Findings about the result files ({format_count(len(found))})"
    lines = [style.paint(title, f"{BOLD};{code}")]
    for row in found.shown[:MOST_LINES]:
        note = "" if row.gates else " (does not gate)"
        where = f" in {escape_terminal(row.where)}" if row.where else ""
        text = f"{row.name}{where}{note}: {escape_terminal(row.sentence, WHOLE_LIMIT)}"
        lines += [f"  {line}" for line in wrap_text(text, style.width - 2)]
    if (rest := len(found.shown) - MOST_LINES) > 0:
        lines.append(f"  and {format_count(rest)} more, in verdict.json")
    if found.consequences:
        lines.append(f"  and {found.summary}, in verdict.json")
    return "\n".join(lines)


def _list_ending(view: ReportView, style: TerminalStyle) -> Iterator[str]:
    found = view.compared_figures
    yield from comparison.list_figure_lines(found, is_compared=view.comparison is not None)
    if found:
        yield ""
    base = [] if view.base is None else [f"{view.base[0]} {escape_terminal(view.base[1])}"]
    yield from wrap_text(" · ".join([*view.evidence, *base]), style.width)
    if view.comparison is not None:
        yield from wrap_text(view.comparison.method, style.width)
        for row in view.comparison.changed_conditions:
            before, after = (escape_terminal(v, NAME_LIMIT) for v in (row.before, row.after))
            text = f"Compared across: {row.condition} {before} -> {after} in {row.scenarios}"
            yield from wrap_text(text, style.width)
        for line in comparison.list_tool_lines(view):
            yield from wrap_text(line, style.width)
    for line in wrap_text(view.headline, style.width):
        yield style.paint(line, f"{BOLD};{GREEN if view.has_passed else RED}")
