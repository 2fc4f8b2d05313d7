"""The canonical form of a model request and its key: equal requests give equal bytes.

Values that differ from run to run are left out (timestamps, run ids, signatures) or numbered
in order of appearance (tool call ids). Secrets are removed before anything is hashed, so a
key does not reveal them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.contract.jsonable import to_jsonable

Json = dict[str, Any]
Redact = Callable[[Any], Any]
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

IGNORED_SETTINGS = frozenset({"extra_headers", "max_retries", "timeout"})
"""Settings of the transport, not of the request; headers hold secrets as well."""

_OUTPUT_FIELDS = (
    "output_mode",
    "output_object",
    "output_tools",
    "native_tools",
    "prompted_output_template",
    "allow_text_output",
    "allow_image_output",
    "thinking",
    "cache",
)
_OUTPUT_DEFAULTS = {"output_mode": "text", "allow_text_output": True, "allow_image_output": False}
_TOOL_FIELDS = ("name", "description", "parameters_json_schema", "strict", "return_schema")


@dataclass(frozen=True)
class CanonicalRequest:
    """A request: head, tools and conversation."""

    head: Json
    """`model`, and if given `settings`, `instructions` and `output`."""
    tools: list[Json]
    messages: tuple[Json, ...]
    ids: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The numbered tool call ids by the original ids of the request."""

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


@cache
def _get_parameters_adapter() -> TypeAdapter[ModelRequestParameters]:
    """Return the adapter that dumps parameters; slow to build, and most runs need none."""
    return TypeAdapter(ModelRequestParameters)


def canonicalize_request(
    model_id: str,
    messages: Sequence[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
    redact: Redact,
) -> CanonicalRequest:
    """Convert a request to its canonical form, without secrets."""
    options = _get_parameters_adapter().dump_python(parameters, mode="json", fallback=to_jsonable)
    head = {
        "model": model_id,
        "settings": _canonicalize_settings(settings),
        "instructions": _find_instructions(messages, options),
        "output": _canonicalize_output(options),
    }
    ids: dict[str, str] = {}
    dumped = to_jsonable(
        ModelMessagesTypeAdapter.dump_python(list(messages), mode="json", fallback=to_jsonable)
    )
    plain = [canonicalize_message(message, ids) for message in _get_objects(dumped)]
    return CanonicalRequest(
        head=redact({name: value for name, value in head.items() if value}),
        tools=redact([_canonicalize_tool(tool) for tool in options["function_tools"]]),
        messages=tuple(redact(plain)),
        ids=ids,
    )


def canonicalize_message(dumped: Json, ids: dict[str, str]) -> Json:
    """Keep the relevant fields of a dumped message; new tool call ids are added to `ids`."""
    parts = [
        _canonicalize_part(part, ids, IGNORED_PART_FIELDS) for part in _get_objects(dumped["parts"])
    ]
    return drop_empty_arguments({"kind": dumped["kind"], "parts": parts})


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
        for part in _get_objects(dumped["parts"])
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


def _canonicalize_settings(settings: ModelSettings | None) -> Any:
    selected = {k: v for k, v in (settings or {}).items() if k not in IGNORED_SETTINGS}
    return to_jsonable({name: value for name, value in selected.items() if value is not None})


def _find_instructions(messages: Sequence[ModelMessage], options: Json) -> str:
    """Return the instructions of a request: the last ones given."""
    parts = [part["content"] for part in options["instruction_parts"] or ()]
    if parts:
        return "\n\n".join(parts)
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    return (requests[-1].instructions or "") if requests else ""


def _canonicalize_output(options: Json) -> Json:
    selected = {name: options.get(name) for name in _OUTPUT_FIELDS}
    selected["output_tools"] = [_canonicalize_tool(tool) for tool in options["output_tools"]]
    return {
        name: to_jsonable(value)
        for name, value in selected.items()
        if value != _OUTPUT_DEFAULTS.get(name) and value not in (None, [], {})
    }


def _canonicalize_tool(tool: Json) -> Json:
    return {name: to_jsonable(tool[name]) for name in _TOOL_FIELDS if tool.get(name) is not None}


def _get_objects(value: Any) -> Iterable[Json]:
    return value if isinstance(value, list) else ()
