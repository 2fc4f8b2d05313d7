"""The canonical form of a model request and its key: equal requests give equal bytes.

Values that differ from run to run are left out (timestamps, run ids, signatures) or numbered
in order of appearance (tool call ids). Secrets are removed before anything is hashed, so a
key does not reveal them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ci_agent_eval.contract.jsonable import to_jsonable

Json = dict[str, Any]


class InlineMapping(Json):
    """An object that is written in a single line where it fits."""


Convert = Callable[[Any], Any]
"""Returns a JSON value with changed texts."""
Redact = Convert
"""Returns a JSON value without its secrets."""

IGNORED_PART_FIELDS = frozenset(
    {
        "content_file_digests",
        "context_id",
        "dynamic_ref",
        "id",
        "metadata",
        "provider_details",
        "provider_name",
        "signature",
        "timestamp",
    }
)
"""Fields of a message part that do not belong to the request."""


@dataclass(frozen=True)
class CanonicalRequest:
    """A request: head, tools and conversation."""

    head: Json
    """`model`, and if given `settings`, `instructions` and `output`."""
    tools: list[Json]
    messages: tuple[Json, ...]
    ids: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The numbered tool call ids by the original ids of the request."""

    def convert(self, convert: Convert) -> CanonicalRequest:
        """Return the request with converted values."""
        head, tools, messages = convert(self.head), convert(self.tools), convert([*self.messages])
        return CanonicalRequest(head, tools, tuple(messages), self.ids)

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """The digest of each message."""
        return tuple(hash_json(message) for message in self.messages)

    @cached_property
    def tools_digest(self) -> str:
        """The digest of the tools."""
        return hash_json(self.tools)

    @cached_property
    def key(self) -> str:
        """The digest of the whole request."""
        return hash_json([self.head, self.tools_digest, self.digests])


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def canonicalize_message(dumped: Json, ids: dict[str, str]) -> Json:
    """Keep the relevant fields of a dumped message; new tool call ids are added to `ids`."""
    parts = [
        _canonicalize_part(part, ids, IGNORED_PART_FIELDS) for part in list_items(dumped["parts"])
    ]
    return drop_empty_arguments({"kind": dumped["kind"], "parts": parts})


def convert_to_message(recording: Json, ids: dict[str, str]) -> Json:
    """Convert a recording to its message in later requests."""
    return canonicalize_message({"kind": "response", "parts": recording.get("parts", [])}, ids)


def drop_empty_arguments(message: Json) -> Json:
    """Remove empty arguments from the calls of a message.

    Models write `"{}"`, a replay returns `{}`, and both mean the same.
    """
    parts = [
        {name: value for name, value in part.items() if (name, value) != ("args", {})}
        for part in message["parts"]
    ]
    return {**message, "parts": parts}


def dump_response_parts(dumped: Json, ids: dict[str, str]) -> list[Json]:
    """Dump the parts of a response with all fields that a replay needs."""
    return [
        _canonicalize_part(part, ids, frozenset({"timestamp"}))
        for part in list_items(dumped["parts"])
    ]


def _canonicalize_part(part: Json, ids: dict[str, str], left_out: frozenset[str]) -> Json:
    """Convert a part, its kind first; arguments that are JSON texts are parsed."""
    kept: Json = {"part_kind": part["part_kind"]}
    for name, value in part.items():
        if name in left_out or value is None or (value in ({}, []) and name != "args"):
            continue
        if name == "tool_call_id":
            kept[name] = ids.setdefault(value, f"call-{len(ids) + 1}")
        elif name == "args":
            kept[name] = _parse_arguments(value)
        elif not (name == "outcome" and value == "success"):
            kept[name] = _hash_files(value) if left_out is IGNORED_PART_FIELDS else value
    return kept


def _parse_arguments(args: Any) -> Any:
    """Parse arguments; a text that does not survive the round trip stays a text."""
    if not isinstance(args, str):
        return args
    try:
        parsed = json.loads(args, object_pairs_hook=_build_object)
    except (ValueError, RecursionError):
        return args
    is_exact = isinstance(parsed, dict) and to_jsonable(parsed) == parsed
    return parsed if is_exact else args


def _build_object(pairs: list[tuple[str, Any]]) -> Json:
    """Build a JSON object. Raises ValueError for a duplicate name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("duplicate name")
    return found


def _hash_files(value: Any) -> Any:
    """Replace the content of files in a value by its hash."""
    if isinstance(value, list):
        return [_hash_files(item) for item in value]
    if not isinstance(value, dict):
        return value
    data = value.get("data")
    if value.get("kind") == "binary" and isinstance(data, str) and not data.startswith("sha256:"):
        return {**value, "data": f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"}
    return {name: _hash_files(item) for name, item in value.items()}


def list_items(value: Any) -> Iterable[Json]:
    """Return the items of a list; nothing for any other value."""
    return value if isinstance(value, list) else ()
