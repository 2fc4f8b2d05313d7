"""A request to a model in canonical form, and its key: the same question is the same bytes.

What differs from run to run without changing the question is left out (timestamps, run
ids, signatures) or numbered in order of appearance (tool call ids). Secrets are taken out
before anything is hashed, so a key tells nothing of them either.
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

PARTS_LEFT_OUT = frozenset(
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
"""Fields of a message's part that are no part of the question."""

SETTINGS_LEFT_OUT = frozenset({"extra_headers", "max_retries", "timeout"})
"""How a request is sent, not what it asks; headers hold secrets as well."""

_OUTPUT = (
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
_TOOL = ("name", "description", "parameters_json_schema", "strict", "return_schema")


@dataclass(frozen=True)
class Request:
    """One request: what goes before the conversation, the tools, and the conversation."""

    head: Json
    """`model`, and where they are given `settings`, `instructions` and `output`."""
    tools: list[Json]
    messages: tuple[Json, ...]
    ids: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The numbered tool call ids by those the request itself uses."""

    @cached_property
    def digests(self) -> tuple[str, ...]:
        """One digest a message."""
        return tuple(digest(message) for message in self.messages)

    @cached_property
    def tools_digest(self) -> str:
        """The digest of the tools."""
        return digest(self.tools)

    @cached_property
    def key(self) -> str:
        """The digest of all of it."""
        return digest([self.head, self.tools_digest, self.digests])


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hexadecimal."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _parameters() -> TypeAdapter[ModelRequestParameters]:
    """Return what writes parameters as JSON; it takes a while to make, and most need none."""
    return TypeAdapter(ModelRequestParameters)


def canonical_request(
    model_id: str,
    messages: Sequence[ModelMessage],
    settings: ModelSettings | None,
    parameters: ModelRequestParameters,
    redact: Redact,
) -> Request:
    """Return a request as it is about to go to a model, without secrets."""
    asked = _parameters().dump_python(parameters, mode="json", fallback=to_jsonable)
    head = {
        "model": model_id,
        "settings": _settings(settings),
        "instructions": _instructions(messages, asked),
        "output": _output(asked),
    }
    ids: dict[str, str] = {}
    dumped = to_jsonable(
        ModelMessagesTypeAdapter.dump_python(list(messages), mode="json", fallback=to_jsonable)
    )
    plain = [message_of(message, ids) for message in _objects(dumped)]
    return Request(
        head=redact({name: value for name, value in head.items() if value}),
        tools=redact([_tool(tool) for tool in asked["function_tools"]]),
        messages=tuple(redact(plain)),
        ids=ids,
    )


def message_of(dumped: Json, ids: dict[str, str]) -> Json:
    """Return a dumped message with what counts of it; new tool call ids are added to `ids`."""
    parts = [_part(part, ids, PARTS_LEFT_OUT) for part in _objects(dumped["parts"])]
    return without_empty_arguments({"kind": dumped["kind"], "parts": parts})


def without_empty_arguments(message: Json) -> Json:
    """Return a message whose calls without arguments hold none.

    Models write `"{}"`, a replay gives back `{}`, and both ask the same.
    """
    parts = [
        {name: value for name, value in part.items() if (name, value) != ("args", {})}
        for part in message["parts"]
    ]
    return {**message, "parts": parts}


def response_parts(dumped: Json, ids: dict[str, str]) -> list[Json]:
    """Return a dumped response's parts with all that a replay needs of them."""
    return [_part(part, ids, frozenset({"timestamp"})) for part in _objects(dumped["parts"])]


def _part(part: Json, ids: dict[str, str], left_out: frozenset[str]) -> Json:
    """Return a part, its kind first; arguments that are JSON are written as what they mean."""
    kept: Json = {"part_kind": part["part_kind"]}
    for name, value in part.items():
        if name in left_out or value is None or (value in ({}, []) and name != "args"):
            continue
        if name == "tool_call_id":
            kept[name] = ids.setdefault(value, f"call-{len(ids) + 1}")
        elif name == "args":
            kept[name] = _arguments(value)
        elif not (name == "outcome" and value == "success"):
            kept[name] = _without_bytes(value) if left_out is PARTS_LEFT_OUT else value
    return kept


def _arguments(args: Any) -> Any:
    """Return arguments parsed; a text that JSON does not hold exactly stays as it was written."""
    if not isinstance(args, str):
        return args
    try:
        parsed = json.loads(args, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        return args
    is_exact = isinstance(parsed, dict) and to_jsonable(parsed) == parsed
    return parsed if is_exact else args


def _object(pairs: list[tuple[str, Any]]) -> Json:
    """Return an object of JSON. Raises ValueError for one that says a name twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def _without_bytes(value: Any) -> Any:
    """Return a value with its files named by what they hold, not written out."""
    if isinstance(value, list):
        return [_without_bytes(item) for item in value]
    if not isinstance(value, dict):
        return value
    data = value.get("data")
    if value.get("kind") == "binary" and isinstance(data, str) and not data.startswith("sha256:"):
        return {**value, "data": f"sha256:{hashlib.sha256(data.encode()).hexdigest()}"}
    return {name: _without_bytes(item) for name, item in value.items()}


def _settings(settings: ModelSettings | None) -> Any:
    given = {k: v for k, v in (settings or {}).items() if k not in SETTINGS_LEFT_OUT}
    return to_jsonable({name: value for name, value in given.items() if value is not None})


def _instructions(messages: Sequence[ModelMessage], asked: Json) -> str:
    """Return the instructions that hold for this request: the last that were given."""
    parts = [part["content"] for part in asked["instruction_parts"] or ()]
    if parts:
        return "\n\n".join(parts)
    requests = [message for message in messages if isinstance(message, ModelRequest)]
    return (requests[-1].instructions or "") if requests else ""


def _output(asked: Json) -> Json:
    given = {name: asked.get(name) for name in _OUTPUT}
    given["output_tools"] = [_tool(tool) for tool in asked["output_tools"]]
    return {
        name: to_jsonable(value)
        for name, value in given.items()
        if value != _OUTPUT_DEFAULTS.get(name) and value not in (None, [], {})
    }


def _tool(tool: Json) -> Json:
    return {name: to_jsonable(tool[name]) for name in _TOOL if tool.get(name) is not None}


def _objects(value: Any) -> Iterable[Json]:
    return value if isinstance(value, list) else ()
