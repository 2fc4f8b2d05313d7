"""The report as Markdown: the pull request's comment, the step summary, the check run's summary.

The verdict leads, the evidence line ends. Of a run that passed everything between them
is folded into one block; of a run that failed, what is wrong stands open. Text of
episodes, tests and files stands in code and nowhere else. `fit` says in which order
sections are shortened and dropped to keep a limit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ci_agent_eval.render.comment_state import state_line, state_of
from ci_agent_eval.render.escape import code_span, comment_token
from ci_agent_eval.render.formats.annotations import unplaced
from ci_agent_eval.render.links import Links, quoted_url
from ci_agent_eval.render.markdown import comparison, details, evaluations, failures, trend, waivers
from ci_agent_eval.render.markdown.blocks import fold, link
from ci_agent_eval.render.markdown.fit import Lines, cuts, fit, size
from ci_agent_eval.render.markdown.section import Section
from ci_agent_eval.render.numbers import count, counted
from ci_agent_eval.render.report_view import ReportView

COMMENT_LIMIT = 60_000
STEP_SUMMARY_LIMIT = 1_000_000
CHECK_SUMMARY_LIMIT = 65_000
MIN_LIMIT = 1_000
"""Below this many bytes not even verdict and evidence are sure to fit."""

COMMENT_LINES = 50
STEP_SUMMARY_LINES = 1_000
SHORT_SHA = 7


def marker(suite: str) -> str:
    """Return the comment's first line, by which it is found again."""
    return f"<!-- agent-eval suite={comment_token(suite)} -->"


def render_comment(view: ReportView, *, limit: int = COMMENT_LIMIT) -> str:
    """Return the comment, at most `limit` UTF-8 bytes; ValueError below `MIN_LIMIT`."""
    marks = f"{marker(view.suite)}\n{state_line(state_of(view))}"
    return _render(view, f"{marks}\n{_heading(view)}", COMMENT_LINES, limit=limit)


def render_step_summary(view: ReportView, *, limit: int = STEP_SUMMARY_LIMIT) -> str:
    """Return the step summary, at most `limit` UTF-8 bytes; ValueError below `MIN_LIMIT`."""
    return _render(view, _heading(view), STEP_SUMMARY_LINES, limit=limit)


def render_check_summary(
    view: ReportView, *, left_out: str = "", limit: int = CHECK_SUMMARY_LIMIT
) -> str:
    """Return the check run's summary, whose title is the headline; limits as for the comment.

    `left_out` says how many annotations are not published, and why; empty: none.
    """
    missing = unplaced(view)
    no_file = f"Not annotated for want of a file: {counted(missing, 'problem')}." if missing else ""
    note = "\n\n".join(part for part in (no_file, left_out) if part)
    return _render(view, "", COMMENT_LINES, limit=limit, note=note)


def annotations_left_out(found: int, most: int) -> str:
    """Say how many of the annotations are not published for there are too many; empty: none."""
    if found <= most:
        return ""
    return (
        f"Left out: {counted(found - most, 'annotation')}; at most {count(most)} are published "
        "(`max_annotations`). All of them are in `annotations.json` of the report folder."
    )


def render_headline_comment(view: ReportView) -> str:
    """Return a comment of the verdict alone, for a comment that may not be sent.

    It has no state, so that the next run replaces it with the full comment.
    """
    where = _whole(view.links)
    note = f"The full comment was withheld because it failed its own safety check; {where}."
    return f"{marker(view.suite)}\n{_heading(view)}\n\n{note}\n"


def _heading(view: ReportView) -> str:
    return f"### {'✅' if view.passed else '❌'} {view.headline}"


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands around the sections, and stays when all of them are dropped."""

    head: str
    tail: str
    links: Links
    limit: int

    def wrap(self, *middle: str) -> str:
        parts = (self.head, *middle, self.tail)
        return "\n\n".join(part for part in parts if part) + "\n"


def _render(view: ReportView, head: str, most: int, *, limit: int, note: str = "") -> str:
    if limit < MIN_LIMIT:
        raise ValueError(f"a report does not fit into {limit} bytes; give it {MIN_LIMIT} or more")
    frame = _Frame(head, _evidence_line(view, view.links), view.links, limit)
    built = sections(view)
    body = _folded if view.passed else _open

    def compose(lines: Lines) -> str:
        shown = body(built, lines, _whole(view.links))
        return frame.wrap(shown, _left_out(frame, built, lines, most), note)

    return fit(compose, most, limit) or _bare(view, frame)


def _open(built: tuple[Section, ...], lines: Lines, whole: str) -> str:
    texts = (
        section.render(lines[section.name], folded=section.folded, whole=whole) for section in built
    )
    return "\n\n".join(text for text in texts if text)


def _folded(built: tuple[Section, ...], lines: Lines, whole: str) -> str:
    shown = [section for section in built if lines[section.name]]
    body = "\n\n".join(
        section.render(lines[section.name], folded=False, whole=whole) for section in shown
    )
    return fold(" · ".join(section.title for section in shown), body) if shown else ""


def _left_out(frame: _Frame, built: tuple[Section, ...], lines: Lines, most: int) -> str:
    taken = cuts(built, lines, most)
    if not taken:
        return ""
    whole = ", ".join(map(str, taken))
    return f"Left out to fit {count(frame.limit)} bytes: {whole}; {_whole(frame.links)}."


def _bare(view: ReportView, frame: _Frame) -> str:
    """Verdict and evidence without links: what is left if addresses alone break the limit."""
    note = f"All else was left out to fit {count(frame.limit)} bytes; {_whole(Links())}."
    whole = _Frame(frame.head, _evidence_line(view, Links()), Links(), frame.limit).wrap(note)
    return whole if size(whole) <= frame.limit else f"{frame.head}\n\n{note}\n"


def _whole(links: Links) -> str:
    """Say where everything stands that is not in this text."""
    if links.artifact_url:
        return f"the whole is in [the report]({quoted_url(links.artifact_url)})"
    return "the whole is in `verdict.json` of the report folder"


def _evidence_line(view: ReportView, links: Links) -> str:
    parts = [*view.evidence]
    if view.base is not None:
        words, label = view.base
        parts.append(f"{words} {code_span(label)}")
    if view.suite != "default":
        parts.append(f"suite {code_span(view.suite, limit=60)}")
    if links.run_url:
        parts.append(link("run", quoted_url(links.run_url)))
    if links.artifact_url:
        parts.append(link("report", quoted_url(links.artifact_url)))
    if links.sha:
        parts.append(f"commit {link(code_span(links.sha[:SHORT_SHA]), links.commit())}")
    return " · ".join(parts)


def sections(view: ReportView) -> tuple[Section, ...]:
    """Return the sections that are not empty, in their order."""
    built = (build(view) for build in _SECTIONS)
    return tuple(section for section in built if section.total)


_SECTIONS: tuple[Callable[[ReportView], Section], ...] = (
    comparison.figures,
    failures.failing,
    comparison.against,
    failures.tests,
    failures.errors,
    failures.skipped,
    failures.known,
    failures.overruns,
    failures.findings,
    comparison.changed_ways,
    comparison.other_ways,
    comparison.moved,
    details.assertions,
    details.outputs,
    evaluations.conversations,
    evaluations.failures,
    details.advisory,
    waivers.quarantined,
    waivers.acknowledged,
    details.warnings,
    details.flaky,
    details.passing,
    details.iterations,
    trend.trend,
    details.sources,
)
