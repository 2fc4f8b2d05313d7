"""Conversion of model responses to recordings and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, JsonValue
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelContextWindowExceededError,
    ModelHTTPError,
)
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
    dump_response_parts,
)

_KEPT_FIELDS = ("model_name", "provider_name", "finish_reason")
"""Recorded fields besides parts and usage. Ids and times are not recorded, nor the
provider's address, which may name an account."""

_STAMPED_FIELDS = frozenset({"latency_ms", "traffic"})
"""Recorded fields that are ours."""

_OVERFLOW = "context_window_exceeded"
"""Key of a recorded refusal, which has no other fields."""

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
    kept["traffic"] = response_stamp.get_traffic(response).dump()
    return redact({name: value for name, value in kept.items() if value not in (None, {}, [])})  # type: ignore[no-any-return]


class _Overflow(BaseModel):
    """The refusal of a request that does not fit the model."""

    model_name: str
    status_code: int | None = None
    """Status of the HTTP response; None for an error inside an open stream."""
    message: str = ""
    body: JsonValue = None

    def build_error(self) -> ModelAPIError:
        """Build the error that PydanticAI raised, of the same type."""
        if self.status_code is None:
            return ModelContextWindowExceededError(self.model_name, self.message, body=self.body)
        return ModelHTTPError.for_category(
            ModelContextWindowExceededError,
            status_code=self.status_code,
            model_name=self.model_name,
            body=self.body,
        )


def record_overflow(error: ModelContextWindowExceededError, redact: Redact) -> Json:
    """Convert the refusal of a request that does not fit the model to its recording.

    It depends on the request alone, as a response does; other errors of a model are not recorded.
    """
    kept = _Overflow(
        model_name=error.model_name,
        status_code=getattr(error, "status_code", None),
        message=error.message,
        body=to_jsonable(error.body),
    )
    return redact({_OVERFLOW: kept.model_dump(exclude_none=True)})  # type: ignore[no-any-return]


def replay_response(recording: Json, request: CanonicalRequest) -> ModelResponse:
    """Convert a recording to a response that is marked as replayed.

    Raises pydantic's ValidationError for an invalid recording, and
    ModelContextWindowExceededError if that is recorded.
    """
    if _OVERFLOW in recording:
        raise _Overflow.model_validate(recording[_OVERFLOW]).build_error()
    plain = {k: v for k, v in recording.items() if k not in _STAMPED_FIELDS}
    (response,) = ModelMessagesTypeAdapter.validate_python(
        [{"parts": [], **plain, "kind": "response"}]
    )
    assert isinstance(response, ModelResponse)  # noqa: S101 - by its kind
    original_ids = {numbered: own for own, numbered in request.ids.items()}
    for part in response.parts:
        if isinstance(part, BaseToolCallPart | BaseToolReturnPart):
            part.tool_call_id = _choose_call_id(part.tool_call_id, original_ids, request.ids)
    response_stamp.stamp_response(
        response,
        latency_ms=recording.get("latency_ms"),
        source="replayed",
        traffic=response_stamp.ResponseTraffic.model_validate(recording.get("traffic") or {}),
    )
    return response


def _choose_call_id(numbered: str, original_ids: Mapping[str, str], used: Mapping[str, str]) -> str:
    """Return the conversation's id of a call, or an unused id."""
    if numbered in original_ids:
        return original_ids[numbered]
    while numbered in used:
        numbered += "-replayed"
    return numbered
