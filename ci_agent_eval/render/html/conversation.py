"""The conversation of an episode: its turns with arguments and results of tool calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ci_agent_eval.render.html.page_limits import PageText
from ci_agent_eval.render.numbers import count_noun, format_count, format_milliseconds, format_money

Part = dict[str, Any]

_ON_ONE_LINE = json.JSONEncoder(ensure_ascii=False).encode
_IN_LINES = json.JSONEncoder(ensure_ascii=False, indent=2).encode

_PLAIN_WIDTH = 72
"""Most characters of JSON that is written on one line."""


MAX_DEPTH = 4
"""Deepest indentation of the turns of nested agents."""

_USUAL = (None, "stop", "tool_call")
"""Finish reasons that are not worth a note."""


class ConversationWriter:
    """Collects turns until the episode's share of the page is used up."""

    def __init__(self, texts: PageText, agents: Sequence[Mapping[str, Any]] = ()) -> None:
        self._texts = texts
        self._left = texts.caps.conversation
        self._agents = {agent["id"]: _describe_agent(agent) for agent in agents}

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
        if (agent := turn.get("agent")) is not None:
            part["agent"] = self._texts.name(self._agents.get(agent, agent))
            part["depth"] = min(agent.count("."), MAX_DEPTH)
        if notes := [*_list_notes(turn), *self._finish(turn)]:
            part["notes"] = notes
        if files := turn.get("attachments"):
            part["files"] = [_describe_file(file) for file in self._texts.first(files)]
        if turn.get("error") is not None:
            part["error"] = self._text(turn["error"])
        if details := [[name, self._text(value)] for name, value in _list_details(turn)]:
            part["details"] = details
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
        if call.get("result_unseen"):
            part["unseen"] = True
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


def _describe_agent(agent: Mapping[str, Any]) -> str:
    """Return the label of an agent: its place in the tree, and its name if it has one."""
    name = f" {agent['name']}" if agent.get("name") else ""
    relation = f" ({agent['relation']})" if agent.get("relation") else ""
    return f"{agent['id']}{name}{relation}"


def _describe_file(file: Mapping[str, Any]) -> str:
    size = file.get("size_bytes")
    known = (
        file.get("media_type") or "file",
        None if size is None else count_noun(size, "byte"),
        f"sha256 {file['sha256']}" if file.get("sha256") else None,
    )
    return ", ".join(part for part in known if part)


def _list_details(turn: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield names and values of the model's answer that few readers need."""
    requested, answered = turn.get("requested_model"), turn.get("response_model")
    if requested and answered and requested != answered:
        yield "Model", f"{answered} (requested: {requested})"
    elif model := answered or requested:
        yield "Model", model
    if turn.get("finish_reason") is not None:
        yield "Finish reason", turn["finish_reason"]
    if turn.get("first_byte_ms") is not None:
        yield "First token", format_milliseconds(turn["first_byte_ms"])
    if settings := turn.get("settings"):
        yield "Settings", ", ".join(f"{k} {_ON_ONE_LINE(settings[k])}" for k in sorted(settings))
    if turn.get("typed_output") is not None:
        yield "Typed output", _format_value(turn["typed_output"])


def _list_notes(turn: Mapping[str, Any]) -> Iterator[str]:
    """Yield source, latency, tokens and cost of a turn."""
    if turn.get("source"):
        yield turn["source"]
    if turn.get("latency_ms") is not None:
        yield format_milliseconds(turn["latency_ms"])
    if (tokens := turn.get("tokens")) is not None:
        read, wrote = format_count(tokens.get("input", 0)), format_count(tokens.get("output", 0))
        cached, thought = _describe_part(tokens, "cached"), _describe_part(tokens, "reasoning")
        yield f"{read}{cached} tokens in, {wrote}{thought} out"
    if turn.get("cost_usd") is not None:
        yield format_money(turn["cost_usd"])


def _describe_part(tokens: Mapping[str, int], name: str) -> str:
    return f" ({format_count(tokens[name])} {name})" if tokens.get(name) else ""
