"""The canonical form of a request in model traffic, and its entry in a cassette. Pure.

A request that continues an earlier one of its take names it and holds only the differences:
in every format a conversation is a list that grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

from ci_agent_eval.engine.cassette.canonical import Convert, Json, hash_json
from ci_agent_eval.model_traffic.messages import FormatName

_TOOLS = "tools"
"""Name of the field with the tools, which are written once for all requests."""


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
        return hash_json([self.format, self.body, self.previous])

    @property
    def tools(self) -> list[Json]:
        """The tools, where the format has them in a list."""
        tools = self.body.get(_TOOLS)
        return tools if isinstance(tools, list) else []

    @cached_property
    def tools_digest(self) -> str:
        """The digest of the tools."""
        return hash_json(self.tools)

    @cached_property
    def digests(self) -> Mapping[str, tuple[str, ...]]:
        """The digests of the items of each list except the tools."""
        lists = {k: v for k, v in self.body.items() if isinstance(v, list) and k != _TOOLS}
        return {name: tuple(map(hash_json, items)) for name, items in lists.items()}

    def convert(self, convert: Convert) -> TrafficRequest:
        """Return the request with converted values."""
        return replace(self, body=convert(self.body))


def dump_traffic_request(
    request: TrafficRequest, earlier: Sequence[tuple[int, TrafficRequest]], toolset: str
) -> Json:
    """Convert a request to the fields of its entry.

    `earlier` holds the numbers and requests of the take so far; `toolset` names the tools.
    """
    fields: Json = {"format": request.format}
    if request.previous is not None:
        fields["previous"] = request.previous
    body = _name_tools(request.body, toolset)
    before = _find_predecessor(request, earlier)
    if before is None:
        return {**fields, "request": body}
    number, old = before
    added = {
        name: request.body[name][len(digests) :]
        for name, digests in old.digests.items()
        if len(request.digests[name]) > len(digests)
    }
    changed = {
        name: body[name]
        for name, value in request.body.items()
        if name not in old.digests and (name not in old.body or old.body[name] != value)
    }
    gone = [name for name in old.body if name not in request.body]
    differences = {"added": added, "changed": changed, "removed": gone}
    return {**fields, "continues": number, **{k: v for k, v in differences.items() if v}}


def parse_traffic_request(
    entry: Json, take: Sequence[object], toolsets: Mapping[str, Any]
) -> TrafficRequest:
    """Parse the request of an entry; `take` holds the requests so far. Raises ValueError."""
    name = entry["format"]
    if name not in get_args(FormatName):
        raise ValueError(f"{name!r} is no format; use {', '.join(get_args(FormatName))}")
    previous = entry.get("previous")
    if previous is not None:
        _get_earlier(take, "previous", previous)
    if "continues" not in entry:
        return TrafficRequest(name, _expand_tools(entry["request"], toolsets), previous)
    old = _get_earlier(take, "continues", entry["continues"])
    body = {k: v for k, v in old.body.items() if k not in entry.get("removed", ())}
    for field, items in entry.get("added", {}).items():
        body[field] = [*body[field], *items]
    body |= _expand_tools(entry.get("changed", {}), toolsets)
    return TrafficRequest(name, body, previous)


def _get_earlier(take: Sequence[object], field: str, number: object) -> TrafficRequest:
    if isinstance(number, int) and 1 <= number <= len(take):
        found = take[number - 1]
        if isinstance(found, TrafficRequest):
            return found
    raise ValueError(
        f"exchange {len(take) + 1}: `{field}` is {number!r}, no earlier exchange of traffic"
    )


def _find_predecessor(
    request: TrafficRequest, earlier: Sequence[tuple[int, TrafficRequest]]
) -> tuple[int, TrafficRequest] | None:
    """Return the earlier request that shares the longest conversation; None without one."""
    shared = [(_count_shared_items(old, request), -number, old) for number, old in earlier]
    best = max(shared, key=lambda found: found[:2], default=None)
    return None if best is None or not best[0] else (-best[1], best[2])


def _count_shared_items(old: TrafficRequest, new: TrafficRequest) -> int:
    """Return the number of items that `new` continues; 0 unless it continues every list."""
    if old.format != new.format:
        return 0
    pairs = [(seen, new.digests.get(name)) for name, seen in old.digests.items()]
    is_continued = all(now is not None and now[: len(seen)] == seen for seen, now in pairs)
    return sum(len(seen) for seen, _ in pairs) if is_continued else 0


def _name_tools(body: Json, toolset: str) -> Json:
    return {**body, _TOOLS: toolset} if isinstance(body.get(_TOOLS), list) else body


def _expand_tools(body: Any, toolsets: Mapping[str, Any]) -> Json:
    named = dict(body)
    if isinstance(named.get(_TOOLS), str):
        named[_TOOLS] = list(toolsets[named[_TOOLS]])
    return named
