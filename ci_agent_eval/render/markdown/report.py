"""The report as Markdown: the pull request's comment, the step summary, the check run's summary.

Headline, lists of changes, cards of causes, folds, and one line at the end. Foreign text is in code
only. `docs/decisions/0055-comment-by-cause.md` explains the order, and which parts a report that is
too long lacks first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.render.cards.model import CauseCard
from ci_agent_eval.render.comment_state import compute_state, render_state_line
from ci_agent_eval.render.escape import code_block, code_span, comment_token
from ci_agent_eval.render.formats.annotations import count_unplaced
from ci_agent_eval.render.links import Links, quote_url
from ci_agent_eval.render.markdown.folds import Fold, build_folds
from ci_agent_eval.render.markdown.phrases import (
    render_card,
    render_change_list,
    render_details,
    render_link,
)
from ci_agent_eval.render.numbers import count_noun, format_count
from ci_agent_eval.render.report_view import ReportView

COMMENT_LIMIT = 60_000
STEP_SUMMARY_LIMIT = 1_000_000
CHECK_SUMMARY_LIMIT = 65_000
MIN_LIMIT = 1_000
"""Fewer bytes may not even hold verdict and evidence."""

_COMMIT = re.compile(r"(?<= )[0-9a-f]{7}(?=,|$)")
"""A short commit among our own words; GitHub would make a link of it, unless it is code."""

SHORT_SHA = 7


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of the report is shown."""

    cards: int
    """Causes that get a card; the others are counted in one more."""
    bodies: int
    """Cards that can be opened."""
    names: int
    """Names in a card."""
    lines: int
    """Names or lines in a fold."""
    folds: int = 100


COMMENT_EXTENT = Extent(cards=5, bodies=6, names=20, lines=100)
STEP_SUMMARY_EXTENT = Extent(cards=50, bodies=51, names=1_000, lines=1_000)


def render_marker(suite: str) -> str:
    """Return the comment's first line, which identifies it."""
    return f"<!-- agent-eval suite={comment_token(suite)} -->"


def render_comment(view: ReportView, *, limit: int = COMMENT_LIMIT) -> str:
    """Return the comment, at most `limit` UTF-8 bytes; ValueError below `MIN_LIMIT`."""
    marks = f"{render_marker(view.suite)}\n{render_state_line(compute_state(view))}"
    return _render_report(view, f"{marks}\n{_render_heading(view)}", COMMENT_EXTENT, limit=limit)


def render_step_summary(view: ReportView, *, limit: int = STEP_SUMMARY_LIMIT) -> str:
    """Return the step summary, at most `limit` UTF-8 bytes; ValueError below `MIN_LIMIT`."""
    # The folder's summary.md is known by its first line, whatever the title is.
    head = f"{render_marker(view.suite)}\n{_render_heading(view)}"
    return _render_report(view, head, STEP_SUMMARY_EXTENT, limit=limit)


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
    return _render_report(view, "", COMMENT_EXTENT, limit=limit, note=note)


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


def _render_report(
    view: ReportView, head: str, extent: Extent, *, limit: int, note: str = ""
) -> str:
    if limit < MIN_LIMIT:
        raise ValueError(f"a report does not fit into {limit} bytes; give it {MIN_LIMIT} or more")
    composer = _Composer(view, head, note, build_folds(view, extent.lines), limit)
    for smaller in _list_extents(extent, len(composer.folds)):
        text = composer.compose(smaller, extent)
        if count_bytes(text) <= limit:
            return text
    return _render_bare(view, head, limit)


def _list_extents(extent: Extent, folds: int) -> Iterator[Extent]:
    """Yield ever smaller extents: without folds, the last first, then bodies, then names."""
    for kept in range(folds, -1, -1):
        yield replace(extent, folds=kept)
    for bodies in range(extent.bodies - 1, 0, -1):
        yield replace(extent, folds=0, bodies=bodies)
    yield replace(extent, folds=0, bodies=1, names=0)
    yield replace(extent, folds=0, bodies=0, names=0)


def count_bytes(text: str) -> int:
    """Return the text's length in UTF-8 bytes."""
    return len(text.encode("utf-8"))


@dataclass(frozen=True, slots=True)
class _Composer:
    """Composes the report from its parts."""

    view: ReportView
    head: str
    note: str
    folds: tuple[Fold, ...]
    limit: int

    def compose(self, extent: Extent, whole_extent: Extent) -> str:
        """Return the report of this extent, with the number of parts that it lacks."""
        whole = _describe_full_report(self.view.links)
        shown = self.folds[: extent.folds]
        cuts = self._describe_cuts(extent, whole_extent)
        parts = (
            self.head,
            "\n".join(map(render_change_list, self.view.changes)),
            *self._render_cards(extent, whole),
            *(render_details(fold.title, fold.body) for fold in shown),
            self._render_commands(),
            f"Left out to fit {format_count(self.limit)} bytes: {cuts}; {whole}." if cuts else "",
            self.note,
            render_ending(self.view, self.view.links),
        )
        return "\n\n".join(part for part in parts if part) + "\n"

    def _render_cards(self, extent: Extent, whole: str) -> Iterator[str]:
        cards = self.view.cards
        opened = (at for at, c in enumerate(cards) if c.body and c.role in {"gates", "contributes"})
        first = next(opened, -1)
        for at, card in enumerate(cards[: extent.cards]):
            yield render_card(
                card,
                names=extent.names,
                has_body=at < extent.bodies,
                is_open=at == first,
                whole=whole,
            )
        if rest := cards[extent.cards :]:
            yield _render_rest(rest, whole)

    def _render_commands(self) -> str:
        if not self.view.commands:
            return ""
        return code_block("\n".join(self.view.commands), 1_000, "sh")

    def _describe_cuts(self, extent: Extent, whole: Extent) -> str:
        bodies = sum(1 for card in self.view.cards[: whole.cards] if card.body)
        kept = sum(1 for card in self.view.cards[: extent.bodies] if card.body)
        parts = []
        if folds := len(self.folds) - min(extent.folds, len(self.folds)):
            parts.append(count_noun(folds, "fold"))
        if extent.bodies < whole.bodies and bodies > kept:
            parts.append(f"the details of {count_noun(bodies - kept, 'cause')}")
        return ", ".join(parts)


def _render_rest(cards: Sequence[CauseCard], whole: str) -> str:
    """Return one line about the causes that get no card."""
    mark = "❌ " if any(card.role == "gates" for card in cards) else "⚠️ "
    scenarios = len(frozenset().union(*(card.scenarios for card in cards)))
    where = f" in {count_noun(scenarios, 'scenario')}" if scenarios else ""
    causes = count_noun(len(cards), "more cause", "more causes")
    return f"{mark}{causes}{where}; {whole}"


def _render_bare(view: ReportView, head: str, limit: int) -> str:
    """Return verdict and last line without links, for addresses that alone break the limit."""
    where = _describe_full_report(Links())
    note = f"All else was left out to fit {format_count(limit)} bytes; {where}."
    text = "\n\n".join(part for part in (head, note, render_ending(view, Links())) if part) + "\n"
    return text if count_bytes(text) <= limit else f"{head}\n\n{note}\n"


def _describe_full_report(links: Links) -> str:
    """Return the pointer to the full report."""
    if links.full_report:
        return f"the whole is in [the report]({quote_url(links.full_report)})"
    return "the whole is in `verdict.json` of the report folder"


def render_ending(view: ReportView, links: Links) -> str:
    """Return the last line: episodes, cost, baseline, and links to read more."""
    parts = [_COMMIT.sub(r"`\g<0>`", part) for part in view.ending]
    if view.base is not None:
        words, label = view.base
        parts.append(f"{words} {code_span(label)}" if view.comparison else "no baseline")
    if view.suite != "default":
        parts.append(f"suite {code_span(view.suite, limit=60)}")
    if links.run_url:
        parts.append(render_link("run", quote_url(links.run_url)))
    if links.full_report:
        parts.append(render_link("report", quote_url(links.full_report)))
    if links.sha:
        parts.append(render_link(code_span(links.sha[:SHORT_SHA]), links.commit()))
    return " · ".join(parts)
