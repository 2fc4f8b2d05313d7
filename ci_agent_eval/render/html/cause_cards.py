"""The first screen of the page: the lists of changes, and a card for each cause.

Both come from the view model that the comment renders, in the same words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias
from urllib.parse import quote

from ci_agent_eval.analysis.behaviour_pairs import BehaviourPair, CutText, ExchangeSide
from ci_agent_eval.analysis.failure_causes import CauseRole
from ci_agent_eval.render.cards.model import (
    CardBlock,
    CauseCard,
    DiffBlock,
    ListBlock,
    OutputBlock,
    ParagraphBlock,
)
from ci_agent_eval.render.change_lists import ChangeKind, ChangeList
from ci_agent_eval.render.escape import more_characters, visible_line
from ci_agent_eval.render.html.page_limits import PageText
from ci_agent_eval.render.links import is_web_address
from ci_agent_eval.render.numbers import format_count
from ci_agent_eval.render.phrases import NAME_LIMIT, Linked, Phrase, Quoted, ScenarioKey, Strong
from ci_agent_eval.render.report_view import ReportView

_HEADS: dict[ChangeKind, str] = {
    "unknown": "Unknown",
    "not_compared": "Not compared",
    "now": "Now",
    "worse": "Worse",
    "better": "Better",
    "different": "Different",
    "unchanged": "Unchanged",
}
_ROLES: dict[CauseRole, str] = {
    "gates": "fails the gate",
    "contributes": "part of a drop",
    "warns": "warning",
    "informs": "changed",
}
_MARKS = {"-": "before", "+": "now"}
_NO_URLS: Mapping[str, str] = {}


Part: TypeAlias = dict[str, Any]
"""A part of a phrase: `kind` (`text`, `strong` or `code`), `text`, and `url` or None."""


def build_scenario_url(scenario_id: str) -> str:
    """Return the address of a scenario on the page, to which comments link, too."""
    return f"#scenario={quote(scenario_id.encode('utf-8', 'replace'), safe='')}"


def build_phrase(phrase: Phrase, urls: Mapping[str, str] = _NO_URLS) -> Sequence[Part]:
    """Return the parts of a phrase; names of scenarios lead to their addresses."""
    return [_build_part(part, urls) for part in phrase]


def _build_part(part: str | Quoted | Strong | Linked, urls: Mapping[str, str]) -> Part:
    if isinstance(part, str):
        return _write_part("text", part)
    if isinstance(part, Strong):
        return _write_part("strong", part.text)
    if isinstance(part, Quoted):
        # A check may be called as a scenario is.
        is_name = part.limit <= NAME_LIMIT
        return _write_part("code", part.shown, urls.get(part.text) if is_name else None)
    inner = _build_part(part.text, urls)
    return {**inner, "url": part.url if is_web_address(part.url) else None}


def _write_part(kind: str, text: str, url: str | None = None) -> Part:
    return {"kind": kind, "text": text, "url": url}


class CausePages:
    """Builds changes and causes; names of scenarios on the page become links to them."""

    def __init__(
        self, view: ReportView, texts: PageText, numbers: Mapping[ScenarioKey, int]
    ) -> None:
        self._texts = texts
        self._numbers = numbers
        self._urls: dict[str, str] = {}
        for row in view.scenarios:
            if row.key in numbers:
                url = build_scenario_url(row.scenario.scenario_id)
                self._urls[row.scenario.scenario_id] = self._urls[row.name.title] = url

    def build(self, view: ReportView) -> Mapping[str, Any]:
        """Return changes and causes, as the template names them."""
        return {
            "changes": list(map(self._build_change, view.changes)),
            "causes": list(map(self._build_cause, self._texts.first(view.cards))),
        }

    def _build_change(self, found: ChangeList) -> tuple[ChangeKind, str, Sequence[Part]]:
        """Return the kind of a list of changes, its heading, and its text."""
        return found.kind, _HEADS[found.kind], self._build_phrase(found.text)

    def _build_cause(self, card: CauseCard) -> Mapping[str, Any]:
        """Return a card; `scenario` is the index of its scenario in the page's list."""
        key = None if card.example is None else card.example.key
        number = None if key is None else self._numbers.get(key)
        return {
            "role": card.role,
            "mark": _ROLES[card.role],
            "summary": self._build_phrase(card.summary),
            "blocks": [self._build_block(block) for block in card.body],
            "scenario": number,
            "url": None if number is None or key is None else self._urls[key[0]],
        }

    def _build_phrase(self, phrase: Phrase) -> Sequence[Part]:
        return build_phrase(phrase, self._urls)

    def _build_block(self, block: CardBlock) -> Mapping[str, Any]:
        if isinstance(block, DiffBlock):
            if block.pair is not None:
                return _build_exchange(block.pair)
            return {"kind": "diff", "lines": list(map(mark_diff_line, block.lines))}
        if isinstance(block, OutputBlock):
            return {"kind": "output", "text": self._texts.text(block.text)}
        if isinstance(block, ParagraphBlock):
            return {"kind": "sentence", "items": [self._build_phrase(block.text)]}
        if isinstance(block, ListBlock):
            return self._build_items("list", [self._build_phrase(line) for line in block.lines])
        names = [[_write_part("code", *self._build_name(name))] for name in block.names]
        return self._build_items("names", names)

    def _build_name(self, title: str) -> tuple[str, str | None]:
        return self._texts.name(title), self._urls.get(title)

    def _build_items(self, kind: str, items: Sequence[Any]) -> Mapping[str, Any]:
        return {"kind": kind, "items": self._texts.first(items), "all": len(items)}


def mark_diff_line(line: str) -> tuple[str, str]:
    """Return the kind of a line of a diff, and its text without the prefix."""
    if line.startswith("@@ "):
        return "head", line.strip("@ ")
    return _MARKS.get(line[:1], "same"), line[2:]


def _build_exchange(pair: BehaviourPair) -> Mapping[str, Any]:
    before = None if pair.before is None else _build_side(pair.before)
    now = _build_side(pair.now)
    return {
        "kind": "exchange",
        "turn": format_count(pair.turn),
        "sides": [("before", before), ("now", now)] if before else [("now", now)],
        "same_user": before is None or before["user"] == now["user"],
    }


def _build_side(side: ExchangeSide) -> Mapping[str, Any]:
    calls = [visible_line(call, len(call)) for call in side.calls]
    if side.more_calls:
        calls.append(f"… {format_count(side.more_calls)} more")
    return {"user": _show_text(side.user), "calls": calls, "answer": _show_text(side.answer)}


def _show_text(cut: CutText) -> str:
    return visible_line(cut.text, len(cut.text)).strip() + more_characters(cut.left_out)
