"""The report as Markdown: the pull request's comment, the step summary, the check run's summary.

The verdict is first, the evidence line last. The sections between them are collapsed into one
block where the gate passed; where it failed, the failures are open. Foreign text is in code
only. `size_limit` shortens and drops sections to keep a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ci_agent_eval.render.comment_state import compute_state, render_state_line
from ci_agent_eval.render.escape import code_span, comment_token
from ci_agent_eval.render.formats.annotations import count_unplaced
from ci_agent_eval.render.links import Links, quote_url
from ci_agent_eval.render.markdown import comparison, details, evaluations, failures, trend, waivers
from ci_agent_eval.render.markdown.blocks import render_details, render_link
from ci_agent_eval.render.markdown.section import Section
from ci_agent_eval.render.markdown.size_limit import Lines, count_bytes, find_cuts, fit_to_limit
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.report_view import ReportView

COMMENT_LIMIT = 60_000
STEP_SUMMARY_LIMIT = 1_000_000
CHECK_SUMMARY_LIMIT = 65_000
MIN_LIMIT = 1_000
"""Fewer bytes may not even hold verdict and evidence."""

COMMENT_LINES = 50
STEP_SUMMARY_LINES = 1_000
SHORT_SHA = 7


def render_marker(suite: str) -> str:
    """Return the comment's first line, which identifies it."""
    return f"<!-- agent-eval suite={comment_token(suite)} -->"


def render_comment(view: ReportView, *, limit: int = COMMENT_LIMIT) -> str:
    """Return the comment, at most `limit` UTF-8 bytes; ValueError below `MIN_LIMIT`."""
    marks = f"{render_marker(view.suite)}\n{render_state_line(compute_state(view))}"
    return _render_report(view, f"{marks}\n{_render_heading(view)}", COMMENT_LINES, limit=limit)


def render_step_summary(view: ReportView, *, limit: int = STEP_SUMMARY_LIMIT) -> str:
    """Return the step summary, at most `limit` UTF-8 bytes; ValueError below `MIN_LIMIT`."""
    return _render_report(view, _render_heading(view), STEP_SUMMARY_LINES, limit=limit)


def render_check_summary(
    view: ReportView, *, left_out: str = "", limit: int = CHECK_SUMMARY_LIMIT
) -> str:
    """Return the check run's summary, whose title is the headline; limits as for the comment.

    `left_out` says how many annotations are not published, and why; empty: none.
    """
    missing = count_unplaced(view)
    no_file = (
        f"Not annotated for want of a file: {count_noun(missing, 'problem')}." if missing else ""
    )
    note = "\n\n".join(part for part in (no_file, left_out) if part)
    return _render_report(view, "", COMMENT_LINES, limit=limit, note=note)


def describe_left_out_annotations(found: int, most: int) -> str:
    """Count the annotations above the limit, which are not published; empty: none."""
    if found <= most:
        return ""
    return (
        f"Left out: {count_noun(found - most, 'annotation')}; at most {format_count(most)} are "
        "published (`max_annotations`). All of them are in `annotations.json` of the report folder."
    )


def render_headline_comment(view: ReportView) -> str:
    """Return a comment of the verdict alone, for a comment that may not be sent.

    It has no state, so that the next run replaces it with the full comment.
    """
    where = _describe_full_report(view.links)
    note = f"The full comment was withheld because it failed its own safety check; {where}."
    return f"{render_marker(view.suite)}\n{_render_heading(view)}\n\n{note}\n"


def _render_heading(view: ReportView) -> str:
    return f"### {'✅' if view.has_passed else '❌'} {view.headline}"


@dataclass(frozen=True, slots=True)
class _ReportFrame:
    """The text around the sections, which stays when all of them are dropped."""

    head: str
    tail: str
    links: Links
    limit: int

    def wrap(self, *middle: str) -> str:
        parts = (self.head, *middle, self.tail)
        return "\n\n".join(part for part in parts if part) + "\n"


def _render_report(view: ReportView, head: str, most: int, *, limit: int, note: str = "") -> str:
    if limit < MIN_LIMIT:
        raise ValueError(f"a report does not fit into {limit} bytes; give it {MIN_LIMIT} or more")
    frame = _ReportFrame(head, _render_evidence(view, view.links), view.links, limit)
    built = build_sections(view)
    body = _render_collapsed if view.has_passed else _render_open
    changed = [_render_changed_conditions(view), _render_tools(view)]

    def compose(lines: Lines) -> str:
        shown = body(built, lines, _describe_full_report(view.links))
        return frame.wrap(*changed, shown, _describe_cuts(frame, built, lines, most), note)

    return fit_to_limit(compose, most, limit) or _render_bare(view, frame)


def _render_changed_conditions(view: ReportView) -> str:
    """Return what differs from the baseline, which changes the meaning of all that follows."""
    rows = view.comparison.changed_conditions if view.comparison else ()
    changes = (
        f"{row.condition} {code_span(row.before, limit=60)} → {code_span(row.after, limit=60)} "
        f"in {row.scenarios}"
        for row in rows
    )
    return f"Compared across: {'; '.join(changes)}." if rows else ""


def _render_tools(view: ReportView) -> str:
    """Return the tools that were renamed, or that more or fewer episodes call."""
    if view.comparison is None or not view.comparison.tools:
        return ""
    changes = (
        f"{code_span(row.tool, limit=60)} → {code_span(row.renamed_to, limit=60)} {row.change}"
        if row.renamed_to is not None
        else f"{code_span(row.tool, limit=60)} {row.change}"
        for row in view.comparison.shown_tools
    )
    return f"Tools: {'; '.join([*changes, *filter(None, [view.comparison.hidden_tools])])}."


def _render_open(built: tuple[Section, ...], lines: Lines, whole: str) -> str:
    texts = (
        section.render(lines[section.name], is_open=section.is_open, whole=whole)
        for section in built
    )
    return "\n\n".join(text for text in texts if text)


def _render_collapsed(built: tuple[Section, ...], lines: Lines, whole: str) -> str:
    shown = [section for section in built if lines[section.name]]
    body = "\n\n".join(
        section.render(lines[section.name], is_open=True, whole=whole) for section in shown
    )
    return render_details(" · ".join(section.title for section in shown), body) if shown else ""


def _describe_cuts(frame: _ReportFrame, built: tuple[Section, ...], lines: Lines, most: int) -> str:
    taken = find_cuts(built, lines, most)
    if not taken:
        return ""
    parts, where = ", ".join(map(str, taken)), _describe_full_report(frame.links)
    return f"Left out to fit {format_count(frame.limit)} bytes: {parts}; {where}."


def _render_bare(view: ReportView, frame: _ReportFrame) -> str:
    """Return verdict and evidence without links, for addresses that alone break the limit."""
    where, evidence = _describe_full_report(Links()), _render_evidence(view, Links())
    note = f"All else was left out to fit {format_count(frame.limit)} bytes; {where}."
    text = _ReportFrame(frame.head, evidence, Links(), frame.limit).wrap(note)
    return text if count_bytes(text) <= frame.limit else f"{frame.head}\n\n{note}\n"


def _describe_full_report(links: Links) -> str:
    """Return the pointer to the full report."""
    if links.artifact_url:
        return f"the whole is in [the report]({quote_url(links.artifact_url)})"
    return "the whole is in `verdict.json` of the report folder"


def _render_evidence(view: ReportView, links: Links) -> str:
    parts = [*view.evidence]
    if view.base is not None:
        words, label = view.base
        parts.append(f"{words} {code_span(label)}")
    if view.suite != "default":
        parts.append(f"suite {code_span(view.suite, limit=60)}")
    if links.run_url:
        parts.append(render_link("run", quote_url(links.run_url)))
    if links.artifact_url:
        parts.append(render_link("report", quote_url(links.artifact_url)))
    if links.sha:
        parts.append(f"commit {render_link(code_span(links.sha[:SHORT_SHA]), links.commit())}")
    return " · ".join(parts)


def build_sections(view: ReportView) -> tuple[Section, ...]:
    """Return the sections that are not empty, in their order."""
    built = (build(view) for build in _SECTIONS)
    return tuple(section for section in built if section.total)


_SECTIONS: tuple[Callable[[ReportView], Section], ...] = (
    comparison.build_figures_section,
    failures.build_failing_section,
    comparison.build_baseline_section,
    failures.build_tests_section,
    failures.build_errors_section,
    failures.build_skipped_section,
    failures.build_manifest_section,
    failures.build_overruns_section,
    failures.build_findings_section,
    comparison.build_changed_diffs_section,
    comparison.build_diverging_section,
    comparison.build_changes_section,
    details.build_assertions_section,
    details.build_outputs_section,
    evaluations.build_conversations_section,
    evaluations.build_measured_section,
    details.build_advisory_section,
    waivers.build_quarantine_section,
    waivers.build_acknowledged_section,
    details.build_warnings_section,
    details.build_flaky_section,
    details.build_passing_section,
    details.build_iterations_section,
    trend.build_trend_section,
    details.build_sources_section,
)
