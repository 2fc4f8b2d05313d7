"""The canonical form of a request through PydanticAI."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.engine.cassette.canonical import (
    CanonicalRequest,
    Json,
    Redact,
    canonicalize_message,
    list_items,
)

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
    plain = [canonicalize_message(message, ids) for message in list_items(dumped)]
    return CanonicalRequest(
        head=redact({name: value for name, value in head.items() if value}),
        tools=redact([_canonicalize_tool(tool) for tool in options["function_tools"]]),
        messages=tuple(redact(plain)),
        ids=ids,
    )


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
