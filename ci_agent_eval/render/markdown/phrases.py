"""Phrases, cards and lists of changes as Markdown, and as HTML where a summary must be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from ci_agent_eval.analysis.failure_causes import CauseRole
from ci_agent_eval.render.cards.model import (
    CardBlock,
    CauseCard,
    DiffBlock,
    ListBlock,
    NamesBlock,
    OutputBlock,
    ParagraphBlock,
)
from ci_agent_eval.render.change_lists import ChangeKind, ChangeList
from ci_agent_eval.render.escape import code_block, code_span, html_code
from ci_agent_eval.render.numbers import format_count
from ci_agent_eval.render.phrases import Linked, Phrase, Quoted, Strong


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A table's column: its title, and whether it holds figures."""

    title: str
    figures: bool = False


def render_table(columns: Sequence[TableColumn], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; every row has a cell for every column and no newline in any."""
    lines = [
        _render_row([column.title for column in columns]),
        "|" + "|".join("---:" if column.figures else "---" for column in columns) + "|",
    ]
    lines += [_render_row(row) for row in rows]
    return "\n".join(lines)


def _render_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def render_list(lines: Iterable[str]) -> str:
    """Return a bullet list of one-line items."""
    return "\n".join(f"- {line}" for line in lines)


def render_details(summary: str, body: str, *, is_open: bool = False) -> str:
    """Return a block that folds; the blank lines make GitHub parse the Markdown in it."""
    tag = "<details open>" if is_open else "<details>"
    return f"{tag}<summary>{summary}</summary>\n\n{body}\n\n</details>"


def render_link(text: str, url: str | None) -> str:
    """Return a link, or only its text where there is no address."""
    return f"[{text}]({url})" if url else text


OUTPUT_LIMIT = 2_000
DIFF_LIMIT = 10_000
BOTH = 2
MOST_LINES = 20
"""Lines of a card's list."""

_MARKS: dict[CauseRole, str] = {"gates": "❌ ", "contributes": "", "warns": "⚠️ ", "informs": "🔵 "}
_HEADS: dict[ChangeKind, str] = {
    "unknown": "⚪ **Unknown:** ",
    "not_compared": "⚪ **Not compared:** ",
    "now": "**Now:** ",
    "worse": "🔴 **Worse:** ",
    "better": "🟢 **Better:** ",
    "different": "🔵 **Different:** ",
    "unchanged": "",
}
"""Every colour has its word, for readers who do not see it."""


def render_phrase(phrase: Phrase) -> str:
    """Return the phrase as Markdown on one line."""
    return "".join(map(_render_part, phrase))


def _render_part(part: str | Quoted | Strong | Linked) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Quoted):
        return code_span(part.shown, limit=len(part.shown))
    if isinstance(part, Strong):
        return f"**{part.text}**"
    return render_link(_render_part(part.text), part.url)


def render_html_phrase(phrase: Phrase) -> str:
    """Return the phrase as HTML on one line, for a summary, in which Markdown means nothing."""
    return "".join(map(_render_html_part, phrase))


def _render_html_part(part: str | Quoted | Strong | Linked) -> str:
    if isinstance(part, str):
        return escape(part)
    if isinstance(part, Quoted):
        return html_code(part.shown, len(part.shown))
    if isinstance(part, Strong):
        return f"<b>{escape(part.text)}</b>"
    text = _render_html_part(part.text)
    return f'<a href="{escape(part.url)}">{text}</a>' if part.url else text


def render_change_list(found: ChangeList) -> str:
    """Return one line about the change."""
    text = f"{_HEADS[found.kind]}{render_phrase(found.text)}"
    return text if found.kind == "unchanged" else f"- {text}"


def render_card(card: CauseCard, *, names: int, has_body: bool, is_open: bool, whole: str) -> str:
    """Return a card; `names` is the number of names shown, `whole` points to all of them."""
    mark = _MARKS[card.role]
    blocks = [_render_block(block, names, whole) for block in card.body] if has_body else []
    body = "\n\n".join(block for block in blocks if block)
    if not body:
        return f"{mark}{render_phrase(card.summary)}"
    return render_details(f"{mark}{render_html_phrase(card.summary)}", body, is_open=is_open)


def _render_block(block: CardBlock, names: int, whole: str) -> str:
    if isinstance(block, DiffBlock):
        return code_block("\n".join(block.lines), DIFF_LIMIT, "diff")
    if isinstance(block, OutputBlock):
        return code_block(block.text, OUTPUT_LIMIT)
    if isinstance(block, ParagraphBlock):
        return render_phrase(block.text)
    if isinstance(block, ListBlock):
        lines = render_list(map(render_phrase, block.lines[:MOST_LINES]))
        rest = len(block.lines) - MOST_LINES
        return f"{lines}\n\nand {format_count(rest)} more; {whole}" if rest > 0 else lines
    return _render_names(block, names, whole)


def _render_names(block: NamesBlock, most: int, whole: str) -> str:
    total, shown = len(block.names), ", ".join(render_names(block.names[:most]))
    if not shown:
        return ""
    if total <= most:
        return f"{'Both' if total == BOTH else f'All {format_count(total)}'}: {shown}"
    rest = format_count(total - most)
    return f"The first {format_count(most)}: {shown}, and {rest} more; {whole}"


def render_names(names: Sequence[str]) -> Sequence[str]:
    """Return each name as code, long ones cut in their middle."""
    return [render_phrase((Quoted(name),)) for name in names]
