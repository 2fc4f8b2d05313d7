"""A cassette as a value and as text. Pure.

An exchange is a request in model traffic, or the call of a tool, with its answer. Each holds all of
its request, except that a set of tools is written once, under its digest. Keys are not written but
computed from the requests, so that a text may be edited by hand.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args

from ci_agent_eval.engine.cassette.answers import Json, build_answer, inline_events
from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.messages import FormatName

VERSION = 3
_TOOLS = "tools"
"""Name of the field with the tools."""
_TOOLSET_NAME_LENGTH = 12
"""Characters of a digest that name a set of tools."""

Convert = Callable[[Any], Any]
"""Returns a JSON value with changed texts."""


class OldCassetteError(InputError):
    """A cassette of a format that is no longer read."""


@dataclass(frozen=True)
class TrafficRequest:
    """A request in model traffic."""

    format: str
    body: Json
    """The canonical request (`Format.build_key`)."""
    previous: int | None = None
    """Number, in the take, of the exchange whose answer the provider continues."""

    @cached_property
    def key(self) -> str:
        """The digest of the whole request."""
        return _hash_json([self.format, self.body, self.previous])

    @property
    def tools(self) -> list[Json]:
        """The tools, where the format has them in a list."""
        tools = self.body.get(_TOOLS)
        return tools if isinstance(tools, list) else []

    def convert(self, convert: Convert) -> TrafficRequest:
        """Return the request with converted values."""
        return replace(self, body=convert(self.body))


@dataclass(frozen=True)
class ToolRequest:
    """A call of a tool."""

    tool: str
    arguments: Any

    @cached_property
    def key(self) -> str:
        """The digest of the call."""
        return _hash_json({"tool": self.tool, "arguments": self.arguments})

    def convert(self, convert: Convert) -> ToolRequest:
        """Return the call with converted values."""
        return replace(self, arguments=convert(self.arguments))


RecordedRequest = TrafficRequest | ToolRequest


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request and the answer to it: of a model (`answers`), or the outcome of a tool."""

    request: RecordedRequest
    response: Json


Take = tuple[RecordedExchange, ...]
"""The exchanges of one iteration, in order."""


@dataclass(frozen=True, slots=True)
class Cassette:
    """The recordings of one scenario: a take for each iteration."""

    scenario: str
    takes: Mapping[int, Take] = field(default_factory=dict)

    def with_take(self, iteration: int, take: Take) -> Cassette:
        """Return the cassette with a take in place of the iteration's old one."""
        return Cassette(self.scenario, dict(sorted({**self.takes, iteration: take}.items())))


def render_cassette(cassette: Cassette) -> str:
    """Render a cassette as YAML; equal recordings give equal bytes."""
    from ci_agent_eval.engine.cassette.yaml_text import render_cassette_yaml  # noqa: PLC0415 - most need no YAML

    toolsets: dict[str, list[Json]] = {}
    takes = [
        {"iteration": iteration, "exchanges": [_dump_exchange(one, toolsets) for one in take]}
        for iteration, take in sorted(cassette.takes.items())
    ]
    head = {"cassette": VERSION, "scenario": cassette.scenario}
    return render_cassette_yaml(
        {**head, "takes": takes, "toolsets": dict(sorted(toolsets.items()))}
    )


def parse_cassette(text: str, source: str) -> Cassette:
    """Parse a cassette; `source` names it in errors. Raises InputError."""
    from ci_agent_eval.engine.cassette.yaml_text import parse_cassette_yaml  # noqa: PLC0415 - most need no YAML

    try:
        data = parse_cassette_yaml(text)
        if (version := data["cassette"]) != VERSION:
            raise OldCassetteError(
                f"cassette {source} has version {version!r}, and this program reads only version "
                f"{VERSION}; record it again with --cassette=record"
            )
        toolsets = data.get("toolsets") or {}
        takes = {
            int(take["iteration"]): tuple(
                _parse_exchange(number, entry, toolsets)
                for number, entry in enumerate(take["exchanges"], 1)
            )
            for take in data["takes"]
        }
        return Cassette(str(data["scenario"]), takes)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        problem = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"cassette {source} cannot be read: {problem}; repair it, or delete it and record "
            "it anew with --cassette=record"
        ) from error


def _dump_exchange(exchange: RecordedExchange, toolsets: dict[str, list[Json]]) -> Json:
    """Convert an exchange to its entry; its tools are added to `toolsets`."""
    request, response = exchange.request, exchange.response
    if isinstance(request, ToolRequest):
        return {"tool": request.tool, "arguments": request.arguments, "outcome": response}
    body = request.body
    if request.tools:
        name = _hash_json(request.tools)[:_TOOLSET_NAME_LENGTH]
        toolsets[name] = request.tools
        body = {**body, _TOOLS: name}
    previous = {} if request.previous is None else {"previous": request.previous}
    answer = inline_events(response)
    return {"format": request.format, **previous, "request": body, "answer": answer}


def _parse_exchange(number: int, entry: Json, toolsets: Mapping[str, Any]) -> RecordedExchange:
    """Parse the entry of an exchange. Raises ValueError, TypeError or KeyError."""
    if "tool" in entry:
        called = ToolRequest(str(entry["tool"]), entry.get("arguments"))
        return RecordedExchange(called, dict(entry["outcome"]))
    name, previous = entry["format"], entry.get("previous")
    if name not in get_args(FormatName):
        raise ValueError(f"{name!r} is not a format; use {', '.join(get_args(FormatName))}")
    if previous is not None and not (isinstance(previous, int) and 1 <= previous < number):
        raise ValueError(f"exchange {number}: `previous` is {previous!r}, no earlier exchange")
    body = dict(entry["request"])
    if isinstance(body.get(_TOOLS), str):
        body[_TOOLS] = list(toolsets[body[_TOOLS]])
    answer = dict(entry["answer"])
    build_answer(answer)  # an invalid one is an error now, not in the middle of an episode
    return RecordedExchange(TrafficRequest(name, body, previous), answer)


def _hash_json(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
