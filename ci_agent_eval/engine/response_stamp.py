"""Our metadata of a model response: its latency, its source, and data of its model traffic.

They are stored in the response's `metadata`, which PydanticAI keeps with the message and
never sends to a model.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, JsonValue
from pydantic_ai.messages import ModelResponse
from pydantic_ai.models import StreamedResponse

from ci_agent_eval.contract.base import Amount, Count, FrozenModel
from ci_agent_eval.contract.trajectory import CallSource, FinishReason

KEY = "ci_agent_eval"


class ResponseTraffic(FrozenModel):
    """The data of a response that only its model traffic shows; named as in `Turn`."""

    requested_model: str | None = None
    response_model: str | None = None
    first_byte_ms: Amount | None = None
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    typed_output: JsonValue = None
    finish_reason: FinishReason | None = None
    error: str | None = None
    reasoning_tokens: Count | None = None
    vendor_priced_model: str | None = None
    """The model whose price at its vendor is the cost, because the address is unknown."""

    def dump(self) -> dict[str, Any]:
        """Return the known data as JSON."""
        return self.model_dump(mode="json", exclude_defaults=True)


def stamp_response(
    response: ModelResponse | StreamedResponse,
    *,
    latency_ms: float | None = None,
    source: CallSource | None = None,
    traffic: ResponseTraffic | None = None,
) -> None:
    """Set the given values; None keeps the old value."""
    metadata = response.metadata = dict(response.metadata or {})
    given = {"latency_ms": latency_ms, "source": source, "traffic": traffic and traffic.dump()}
    metadata[KEY] = {
        **_get_stamp(response),
        **{name: value for name, value in given.items() if value is not None},
    }


def get_latency_ms(response: ModelResponse) -> float | None:
    """Return the latency in milliseconds, if it was set."""
    value = _get_stamp(response).get("latency_ms")
    return value if isinstance(value, int | float) else None


def get_source(response: ModelResponse) -> CallSource:
    """Return the source of the response; `live` by default."""
    value = _get_stamp(response).get("source", "live")
    return value if value in ("replayed", "scripted") else "live"


def has_traffic(response: ModelResponse) -> bool:
    """Return whether the data of the response's model traffic was set."""
    return "traffic" in _get_stamp(response)


def get_traffic(response: ModelResponse) -> ResponseTraffic:
    """Return the data of the response's model traffic; empty if it has none."""
    return ResponseTraffic.model_validate(_get_stamp(response).get("traffic") or {})


def _get_stamp(response: ModelResponse | StreamedResponse) -> dict[str, Any]:
    found = (response.metadata or {}).get(KEY)
    return dict(found) if isinstance(found, dict) else {}
