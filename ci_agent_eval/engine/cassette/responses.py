"""A model's response as a recording holds it, and back."""

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
"""What a response says beside its parts and usage. Ids and times are not kept, nor the
provider's address, which may name whose account it is."""

_VOLATILE_DETAILS = frozenset({"timestamp", "system_fingerprint"})


def record_response(response: ModelResponse, request: CanonicalRequest, redact: Redact) -> Json:
    """Return a response as it is written down, without secrets."""
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
    """Return a recorded response as the model's own, marked as replayed.

    Raises pydantic's ValidationError where the recording is no response.
    """
    plain = {k: v for k, v in recording.items() if k != "latency_ms"}
    (response,) = ModelMessagesTypeAdapter.validate_python(
        [{"parts": [], **plain, "kind": "response"}]
    )
    assert isinstance(response, ModelResponse)  # noqa: S101 - by its kind
    live = {numbered: own for own, numbered in request.ids.items()}
    for part in response.parts:
        if isinstance(part, BaseToolCallPart | BaseToolReturnPart):
            part.tool_call_id = _choose_call_id(part.tool_call_id, live, request.ids)
    response_stamp.stamp_response(
        response, latency_ms=recording.get("latency_ms"), source="replayed"
    )
    return response


def convert_to_message(recording: Json, ids: dict[str, str]) -> Json:
    """Return a recorded response as it stands in the requests that come after it."""
    return canonicalize_message({"kind": "response", "parts": recording.get("parts", [])}, ids)


def _choose_call_id(numbered: str, live: Mapping[str, str], taken: Mapping[str, str]) -> str:
    """Return the id the conversation itself uses, or one that it does not use yet."""
    if numbered in live:
        return live[numbered]
    while numbered in taken:
        numbered += "-replayed"
    return numbered
