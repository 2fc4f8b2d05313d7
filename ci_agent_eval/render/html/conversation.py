"""The conversation of an episode: its turns with arguments and results of tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ci_agent_eval.render.html.page_limits import PageText
from ci_agent_eval.render.numbers import format_count, format_milliseconds, format_money

Part = dict[str, Any]

_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False).encode
_IN_LINES = json.JSONEncoder(ensure_ascii=False, indent=2).encode

_PLAIN_WIDTH = 72
"""Most characters of JSON that is written on one line."""


_USUAL = (None, "stop", "tool_call")
"""Finish reasons that are not worth a note."""


class ConversationWriter:
    """Collects turns until the episode's share of the page is used up."""

    def __init__(self, texts: PageText) -> None:
        self._texts = texts
        self._left = texts.caps.conversation

    def turns(self, turns: list[Mapping[str, Any]]) -> list[Part]:
        """Return the turns that are shown: all of them, unless they are very long or many."""
        return [self._turn(turn) for turn in self._while_room(turns)]

    def _while_room(self, items: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for number, item in enumerate(self._texts.first(items)):
            if self._left <= 0:
                shown = min(len(items), self._texts.caps.items)
                self._texts.cut.items += shown - number
                return
            yield item

    def _turn(self, turn: Mapping[str, Any]) -> Part:
        part: Part = {"role": turn["role"], "text": self._text(turn.get("content", ""))}
        if notes := [*_list_notes(turn), *self._finish(turn)]:
            part["notes"] = notes
        if calls := turn.get("tool_calls"):
            part["calls"] = [self._call(call) for call in self._while_room(calls)]
        return part

    def _finish(self, turn: Mapping[str, Any]) -> Iterator[str]:
        """Yield an unusual finish reason."""
        if turn.get("finish_reason") not in _USUAL:
            yield f"finished: {self._texts.name(turn['finish_reason'])}"

    def _call(self, call: Mapping[str, Any]) -> Part:
        part: Part = {"name": self._texts.name(call["name"])}
        for key in ("arguments", "result"):
            if call.get(key) is not None:
                part[key] = self._text(_format_value(call[key]))
        if call.get("error") is not None:
            part["error"] = self._text(call["error"])
        if call.get("duration_ms") is not None:
            part["duration"] = format_milliseconds(call["duration_ms"])
        if call.get("steered_by"):
            # It took no time: this stands in the duration's place.
            part["duration"] = f"held back by {self._texts.name(call['steered_by'])}"
        return part

    def _text(self, text: str) -> str:
        shown = self._texts.text(text, max(self._left, 0))
        self._left -= len(shown)
        return shown


def _format_value(value: Any) -> str:
    """Format a tool's argument or result: text unchanged, other values as JSON."""
    if isinstance(value, str):
        return value
    short = _ON_ONE_LINE(value)
    return short if len(short) <= _PLAIN_WIDTH else _IN_LINES(value)


def _list_notes(turn: Mapping[str, Any]) -> Iterator[str]:
    """Yield source, latency, tokens and cost of a turn."""
    if turn.get("source"):
        yield turn["source"]
    if turn.get("latency_ms") is not None:
        yield format_milliseconds(turn["latency_ms"])
    if (tokens := turn.get("tokens")) is not None:
        cached = f" ({format_count(tokens['cached'])} cached)" if tokens.get("cached") else ""
        read, wrote = format_count(tokens.get("input", 0)), format_count(tokens.get("output", 0))
        yield f"{read}{cached} tokens in, {wrote} out"
    if turn.get("cost_usd") is not None:
        yield format_money(turn["cost_usd"])
