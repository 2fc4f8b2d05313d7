"""A cassette as a value and as text. Pure.

An exchange is one of PydanticAI's messages, one of model traffic (`traffic_request`), or the call
of a tool. A request to a model that continues an earlier exchange of its take names it
(`continues`) and holds only the new messages; each set of tools is written once, under its
digest. Keys are not written but computed from the requests, so that a text may be edited by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.engine.cassette.canonical import (
    CanonicalRequest,
    Json,
    convert_to_message,
    drop_empty_arguments,
    hash_json,
)
from ci_agent_eval.engine.cassette.tool_request import ToolRequest
from ci_agent_eval.engine.cassette.traffic_answer import build_answer, inline_events
from ci_agent_eval.engine.cassette.traffic_request import (
    TrafficRequest,
    dump_traffic_request,
    parse_traffic_request,
)
from ci_agent_eval.errors import InputError

MESSAGES_VERSION = 1
"""Version of a cassette that holds only exchanges of PydanticAI's messages."""
VERSION = 2
_HEAD_FIELDS = ("model", "settings", "instructions", "output")
_TOOLSET_NAME_LENGTH = 12
"""Characters of a digest that name a set of tools."""


RecordedRequest = CanonicalRequest | TrafficRequest | ToolRequest


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request and the response to it."""

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
    takes = [
        {"iteration": iteration, "exchanges": _dump_take(take)}
        for iteration, take in sorted(cassette.takes.items())
    ]
    tools = {
        _build_toolset_name(request): request.tools
        for take in cassette.takes.values()
        for request in (exchange.request for exchange in take)
        if not isinstance(request, ToolRequest) and request.tools
    }
    from ci_agent_eval.engine.cassette.yaml_text import render_cassette_yaml  # noqa: PLC0415 - most need no YAML

    return render_cassette_yaml(
        {
            "cassette": _choose_version(cassette),
            "scenario": cassette.scenario,
            "takes": takes,
            "toolsets": dict(sorted(tools.items())),
        }
    )


def parse_cassette(text: str, source: str) -> Cassette:
    """Parse a cassette; `source` names it in errors. Raises InputError."""
    from ci_agent_eval.engine.cassette.yaml_text import parse_cassette_yaml  # noqa: PLC0415 - most need no YAML

    try:
        data = parse_cassette_yaml(text)
        _check_version(data["cassette"])
        takes = {
            int(take["iteration"]): _parse_take(take["exchanges"], data.get("toolsets") or {})
            for take in data["takes"]
        }
        return Cassette(str(data["scenario"]), takes)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        problem = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(
            f"cassette {source} cannot be read: {problem}; repair it, or delete it and record "
            "it anew with --cassette=record"
        ) from error


def _choose_version(cassette: Cassette) -> int:
    """Return the oldest version that holds the cassette, so that older files stay as they are."""
    requests = [exchange.request for take in cassette.takes.values() for exchange in take]
    is_old = all(isinstance(request, CanonicalRequest) for request in requests)
    return MESSAGES_VERSION if is_old else VERSION


def _check_version(version: object) -> None:
    if version not in (MESSAGES_VERSION, VERSION):
        raise ValueError(f"it is of version {version!r}, this program reads up to {VERSION}")


def _build_toolset_name(request: CanonicalRequest | TrafficRequest) -> str:
    return request.tools_digest[:_TOOLSET_NAME_LENGTH]


def _dump_take(take: Take) -> list[Json]:
    requests = [exchange.request for exchange in take]
    traffic = [(n, r) for n, r in enumerate(requests, 1) if isinstance(r, TrafficRequest)]
    messages = {
        number: (request, _hash_conversation(request, exchange.response))
        for number, (request, exchange) in enumerate(zip(requests, take, strict=True), 1)
        if isinstance(request, CanonicalRequest)
    }
    dumped: list[Json] = []
    for number, exchange in enumerate(take, 1):
        request, response = exchange.request, exchange.response
        if isinstance(request, TrafficRequest):
            earlier = [(n, old) for n, old in traffic if n < number]
            entry = dump_traffic_request(request, earlier, _build_toolset_name(request))
            dumped.append({**entry, "answer": inline_events(response)})
        elif isinstance(request, ToolRequest):
            called = {"tool": request.tool, "arguments": request.arguments}
            dumped.append({**called, "outcome": response})
        else:
            before = {n: found for n, found in messages.items() if n < number}
            dumped.append({"request": _dump_request(request, before), "response": response})
    return dumped


_Conversation = tuple[CanonicalRequest, tuple[str, ...]]
"""A request, and the digests that its continuations begin with."""


def _hash_conversation(request: CanonicalRequest, response: Json) -> tuple[str, ...]:
    answer = convert_to_message(response, _list_call_ids(request))
    return (*request.digests, hash_json(answer))


def _list_call_ids(request: CanonicalRequest) -> dict[str, str]:
    """Map the call ids of a canonical request to themselves."""
    parts = [part for message in request.messages for part in message["parts"]]
    return {p["tool_call_id"]: p["tool_call_id"] for p in parts if "tool_call_id" in p}


def _dump_request(request: CanonicalRequest, earlier: Mapping[int, _Conversation]) -> Json:
    full: Json = {
        **{name: request.head[name] for name in _HEAD_FIELDS if name in request.head},
        **({"tools": _build_toolset_name(request)} if request.tools else {}),
    }
    before = _find_predecessor(request, earlier)
    if before is None:
        return {**full, "messages": list(request.messages)}
    old, digests = earlier[before]
    inherited = {**old.head, **({"tools": _build_toolset_name(old)} if old.tools else {})}
    changed = {k: v for k, v in full.items() if inherited.get(k) != v}
    gone = {name: None for name in inherited if name not in full}
    new = list(request.messages[len(digests) :])
    return {"continues": before, **changed, **gone, "messages": new}


def _find_predecessor(
    request: CanonicalRequest, earlier: Mapping[int, _Conversation]
) -> int | None:
    """Return the number of the longest earlier exchange that the request continues."""
    lengths = {
        number: len(seen)
        for number, (_, seen) in earlier.items()
        if request.digests[: len(seen)] == seen
    }
    return max(lengths, key=lambda number: (lengths[number], -number), default=None)


def _parse_take(exchanges: Any, toolsets: Mapping[str, Any]) -> Take:
    take: list[RecordedExchange] = []
    for entry in exchanges:
        take.append(_parse_exchange(entry, take, toolsets))
    return tuple(take)


def _parse_exchange(
    entry: Json, take: Sequence[RecordedExchange], toolsets: Mapping[str, Any]
) -> RecordedExchange:
    if "tool" in entry:
        called = ToolRequest(str(entry["tool"]), entry.get("arguments"))
        return RecordedExchange(called, dict(entry["outcome"]))
    if "format" not in entry:
        request = _parse_request(entry["request"], take, toolsets)
        return RecordedExchange(request, dict(entry["response"]))
    answer = dict(entry["answer"])
    build_answer(answer)  # an invalid one is an error now, not in the middle of an episode
    earlier = [exchange.request for exchange in take]
    return RecordedExchange(parse_traffic_request(entry, earlier, toolsets), answer)


def _parse_request(
    data: Json, take: Sequence[RecordedExchange], toolsets: Mapping[str, Any]
) -> CanonicalRequest:
    head = {name: data[name] for name in _HEAD_FIELDS if name in data}
    new = tuple(drop_empty_arguments(message) for message in data["messages"])
    if data.get("continues") is None:
        return CanonicalRequest(head, _parse_tools(data, toolsets, []), new)
    number = data["continues"]
    earlier = {
        n: (exchange.request, exchange.response)
        for n, exchange in enumerate(take, 1)
        if isinstance(exchange.request, CanonicalRequest)
    }
    if number not in earlier:
        raise ValueError(f"exchange {len(take) + 1} continues {number!r}, which is not before it")
    old, response = earlier[number]
    answer = convert_to_message(response, _list_call_ids(old))
    merged_head = {**old.head, **head}
    return CanonicalRequest(
        {name: value for name, value in merged_head.items() if value is not None},
        _parse_tools(data, toolsets, old.tools),
        (*old.messages, answer, *new),
    )


def _parse_tools(data: Json, toolsets: Mapping[str, Any], inherited: list[Json]) -> list[Json]:
    if "tools" not in data:
        return inherited
    name = data["tools"]
    return [] if name is None else list(toolsets[name])
