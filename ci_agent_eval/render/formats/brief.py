"""The brief for a coding agent: the failing causes as short Markdown or JSON.

Both are built from the cards of the comment. Foreign text is cut, and in Markdown it is code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ci_agent_eval.render.cards.model import (
    SENTENCE_LIMIT,
    CardExample,
    CauseCard,
    DiffBlock,
    OutputBlock,
    ParagraphBlock,
)
from ci_agent_eval.render.change_lists import ChangeList
from ci_agent_eval.render.escape import code_block, code_span, visible_line, visible_lines
from ci_agent_eval.render.markdown.phrases import DIFF_LIMIT, OUTPUT_LIMIT, render_phrase
from ci_agent_eval.render.numbers import count_noun
from ci_agent_eval.render.phrases import CHECK_LIMIT, get_phrase_text
from ci_agent_eval.render.report_view import ReportView

MOST_CAUSES = 5
COMMAND_LIMIT = 1_000
PLACE_LIMIT = 400

_SHOWN_CHANGES = frozenset({"unknown", "worse", "different"})


def render_brief_markdown(view: ReportView) -> str:
    """Return the headline, the changes, and a paragraph with details for each failing cause."""
    shown, rest = _select_cards(view)
    parts = [f"### {'✅' if view.has_passed else '❌'} {view.headline}"]
    changes = [f"- {change.kind}: {render_phrase(change.text)}" for change in _list_changes(view)]
    parts += ["\n".join(changes)] if changes else []
    for number, card in enumerate(shown, start=1):
        parts += [f"**Cause {number}:** {render_phrase(card.summary)}", *_render_card(card)]
    if rest:
        parts.append(f"{count_noun(rest, 'more cause')} in `report.html` and `comment.md`.")
    return "\n\n".join(parts) + "\n"


def render_brief_json(view: ReportView) -> str:
    """Return the same as JSON: sorted keys, two spaces, ASCII, a newline at the end."""
    shown, rest = _select_cards(view)
    document = {
        "version": 1,
        "conclusion": view.conclusion,
        "headline": view.headline,
        "changes": [
            {"kind": change.kind, "text": get_phrase_text(change.text)}
            for change in _list_changes(view)
        ],
        "causes": list(map(_build_cause, shown)),
        "more_causes": rest,
    }
    return json.dumps(document, indent=2, sort_keys=True) + "\n"


def _select_cards(view: ReportView) -> tuple[Sequence[CauseCard], int]:
    """Return the first cards that make the gate fail, and the number of the others."""
    failing = () if view.has_passed else [card for card in view.cards if card.role != "warns"]
    return failing[:MOST_CAUSES], max(len(failing) - MOST_CAUSES, 0)


def _list_changes(view: ReportView) -> Sequence[ChangeList]:
    return [change for change in view.changes if change.kind in _SHOWN_CHANGES]


def _render_card(card: CauseCard) -> Iterator[str]:
    shown = get_phrase_text(card.summary)
    for block in card.body:
        if isinstance(block, DiffBlock):
            yield code_block("\n".join(block.lines), DIFF_LIMIT, "diff")
        if isinstance(block, OutputBlock):
            yield code_block(block.text, OUTPUT_LIMIT)
        if isinstance(block, ParagraphBlock):
            shown += get_phrase_text(block.text)
            yield render_phrase(block.text)
    lines = [] if card.example is None else _list_example_lines(card.example, shown)
    if lines:
        yield "\n".join(f"- {line}" for line in lines)


def _list_example_lines(example: CardExample, shown: str) -> Sequence[str]:
    """Return the parts of the example that are not shown yet, and the command."""
    parts = (
        ("example", example.title, CHECK_LIMIT),
        ("place", example.place.text, PLACE_LIMIT),
        ("message", example.message, SENTENCE_LIMIT),
    )
    lines = [
        f"{label}: {code_span(text, limit=limit)}"
        for label, text, limit in parts
        if text and visible_line(text, limit) not in shown
    ]
    if example.command:
        lines.append(f"run again: {code_span(example.command, limit=COMMAND_LIMIT)}")
    return lines


def _build_cause(card: CauseCard) -> dict[str, Any]:
    diffs = (block for block in card.body if isinstance(block, DiffBlock))
    diff = "\n".join(line for block in diffs for line in block.lines)
    return {
        "summary": get_phrase_text(card.summary),
        "scenarios": len(card.scenarios),
        "diff": visible_lines(diff, DIFF_LIMIT).split("\n") if diff else [],
        "output": [
            visible_lines(block.text, OUTPUT_LIMIT)
            for block in card.body
            if isinstance(block, OutputBlock)
        ],
        "notes": [
            get_phrase_text(block.text) for block in card.body if isinstance(block, ParagraphBlock)
        ],
        "example": None if card.example is None else _build_example(card.example),
    }


def _build_example(example: CardExample) -> dict[str, Any]:
    return {
        "title": visible_line(example.title, CHECK_LIMIT),
        "file": visible_line(example.place.file, PLACE_LIMIT) if example.place.file else None,
        "line": example.place.line,
        "check": visible_line(example.check, CHECK_LIMIT) or None,
        "message": visible_line(example.message, SENTENCE_LIMIT) or None,
        "run_again": example.command or None,
    }
