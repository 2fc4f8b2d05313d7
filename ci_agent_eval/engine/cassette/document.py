"""A cassette as a value and as text. Pure.

A request that continues an earlier exchange of its take names it (`continues`) and holds only
the new messages; each set of tools is written once, under its digest. Keys are not written but
computed from the requests, so that a text may be edited by hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.engine.cassette.canonical import (
    CanonicalRequest,
    Json,
    drop_empty_arguments,
    hash_json,
)
from ci_agent_eval.engine.cassette.responses import convert_to_message
from ci_agent_eval.errors import InputError

VERSION = 1
_HEAD_FIELDS = ("model", "settings", "instructions", "output")
_TOOLSET_NAME_LENGTH = 12
"""Characters of a digest that name a set of tools."""


@dataclass(frozen=True, slots=True)
class RecordedExchange:
    """A request and the response to it."""

    request: CanonicalRequest
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
        name: tools
        for take in cassette.takes.values()
        for name, tools in ((_build_toolset_name(e.request), e.request.tools) for e in take)
        if tools
    }
    from ci_agent_eval.engine.cassette.yaml_text import render_cassette_yaml  # noqa: PLC0415 - most need no YAML

    return render_cassette_yaml(
        {
            "cassette": VERSION,
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


def _check_version(version: object) -> None:
    if version != VERSION:
        raise ValueError(f"it is of version {version!r}, this program reads {VERSION}")


def _build_toolset_name(request: CanonicalRequest) -> str:
    return request.tools_digest[:_TOOLSET_NAME_LENGTH]


def _dump_take(take: Take) -> list[Json]:
    digests = [_hash_conversation(exchange) for exchange in take]
    return [_dump_exchange(take, number, digests) for number in range(len(take))]


def _hash_conversation(exchange: RecordedExchange) -> tuple[str, ...]:
    """Return the digests that a continuation of this exchange begins with."""
    answer = convert_to_message(exchange.response, _list_call_ids(exchange.request))
    return (*exchange.request.digests, hash_json(answer))


def _list_call_ids(request: CanonicalRequest) -> dict[str, str]:
    """Map the call ids of a canonical request to themselves."""
    parts = [part for message in request.messages for part in message["parts"]]
    return {p["tool_call_id"]: p["tool_call_id"] for p in parts if "tool_call_id" in p}


def _dump_exchange(take: Take, number: int, digests: Sequence[tuple[str, ...]]) -> Json:
    request = take[number].request
    full: Json = {
        **{name: request.head[name] for name in _HEAD_FIELDS if name in request.head},
        **({"tools": _build_toolset_name(request)} if request.tools else {}),
    }
    before = _find_predecessor(request, digests[:number])
    if before is None:
        dumped = {**full, "messages": list(request.messages)}
    else:
        old = take[before].request
        inherited = {**old.head, **({"tools": _build_toolset_name(old)} if old.tools else {})}
        changed = {k: v for k, v in full.items() if inherited.get(k) != v}
        gone = {name: None for name in inherited if name not in full}
        new = list(request.messages[len(digests[before]) :])
        dumped = {"continues": before + 1, **changed, **gone, "messages": new}
    return {"request": dumped, "response": take[number].response}


def _find_predecessor(request: CanonicalRequest, earlier: Sequence[tuple[str, ...]]) -> int | None:
    """Return the number of the longest earlier exchange that the request continues."""
    fitting = [n for n, seen in enumerate(earlier) if request.digests[: len(seen)] == seen]
    return max(fitting, key=lambda n: (len(earlier[n]), -n), default=None)


def _parse_take(exchanges: Any, toolsets: Mapping[str, Any]) -> Take:
    take: list[RecordedExchange] = []
    for entry in exchanges:
        take.append(
            RecordedExchange(
                _parse_request(entry["request"], take, toolsets), dict(entry["response"])
            )
        )
    return tuple(take)


def _parse_request(
    data: Json, take: Sequence[RecordedExchange], toolsets: Mapping[str, Any]
) -> CanonicalRequest:
    head = {name: data[name] for name in _HEAD_FIELDS if name in data}
    new = tuple(drop_empty_arguments(message) for message in data["messages"])
    if data.get("continues") is None:
        return CanonicalRequest(head, _parse_tools(data, toolsets, []), new)
    number = data["continues"]
    if not isinstance(number, int) or not 1 <= number <= len(take):
        raise ValueError(f"exchange {len(take) + 1} continues {number!r}, which is not before it")
    before = take[number - 1]
    answer = convert_to_message(before.response, _list_call_ids(before.request))
    merged_head = {**before.request.head, **head}
    return CanonicalRequest(
        {name: value for name, value in merged_head.items() if value is not None},
        _parse_tools(data, toolsets, before.request.tools),
        (*before.request.messages, answer, *new),
    )


def _parse_tools(data: Json, toolsets: Mapping[str, Any], inherited: list[Json]) -> list[Json]:
    if "tools" not in data:
        return inherited
    name = data["tools"]
    return [] if name is None else list(toolsets[name])
