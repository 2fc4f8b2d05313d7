"""Conversion of model responses to recordings and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_ai.messages import (
    BaseToolCallPart,
    BaseToolReturnPart,
    ModelMessagesTypeAdapter,
    ModelResponse,
)

from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.engine import response_stamp
from ci_agent_eval.engine.cassette.canonical import (
    CanonicalRequest,
    Json,
    Redact,
    canonicalize_message,
    dump_response_parts,
)

_KEPT_FIELDS = ("model_name", "provider_name", "finish_reason")
"""Recorded fields besides parts and usage. Ids and times are not recorded, nor the
provider's address, which may name an account."""

_VOLATILE_DETAILS = frozenset({"timestamp", "system_fingerprint"})


def record_response(response: ModelResponse, request: CanonicalRequest, redact: Redact) -> Json:
    """Convert a response to its recording, without secrets."""
    (dumped,) = ModelMessagesTypeAdapter.dump_python([response], mode="json", fallback=to_jsonable)
    plain: Any = to_jsonable(dumped)
    kept: Json = {"parts": dump_response_parts(plain, dict(request.ids))}
    kept["usage"] = {name: value for name, value in plain["usage"].items() if value}
    for name in _KEPT_FIELDS:
        kept[name] = plain[name]
    details = plain["provider_details"] or {}
    kept["provider_details"] = {k: v for k, v in details.items() if k not in _VOLATILE_DETAILS}
    if plain["state"] != "complete":
        kept["state"] = plain["state"]
    kept["latency_ms"] = response_stamp.get_latency_ms(response)
    return redact({name: value for name, value in kept.items() if value not in (None, {}, [])})  # type: ignore[no-any-return]


def replay_response(recording: Json, request: CanonicalRequest) -> ModelResponse:
    """Convert a recording to a response that is marked as replayed.

    Raises pydantic's ValidationError for an invalid recording.
    """
    plain = {k: v for k, v in recording.items() if k != "latency_ms"}
    (response,) = ModelMessagesTypeAdapter.validate_python(
        [{"parts": [], **plain, "kind": "response"}]
    )
    assert isinstance(response, ModelResponse)  # noqa: S101 - by its kind
    original_ids = {numbered: own for own, numbered in request.ids.items()}
    for part in response.parts:
        if isinstance(part, BaseToolCallPart | BaseToolReturnPart):
            part.tool_call_id = _choose_call_id(part.tool_call_id, original_ids, request.ids)
    response_stamp.stamp_response(
        response, latency_ms=recording.get("latency_ms"), source="replayed"
    )
    return response


def convert_to_message(recording: Json, ids: dict[str, str]) -> Json:
    """Convert a recording to its message in later requests."""
    return canonicalize_message({"kind": "response", "parts": recording.get("parts", [])}, ids)


def _choose_call_id(numbered: str, original_ids: Mapping[str, str], used: Mapping[str, str]) -> str:
    """Return the conversation's id of a call, or an unused id."""
    if numbered in original_ids:
        return original_ids[numbered]
    while numbered in used:
        numbered += "-replayed"
    return numbered
