"""Our metadata of a model response: its latency and source.

They are stored in the response's `metadata`, which PydanticAI keeps with the message and
never sends to a model. The rate limiter sets the latency of the request, the cassette the
source of a replayed response.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ModelResponse

from ci_agent_eval.contract.trajectory import CallSource

KEY = "ci_agent_eval"


def stamp_response(
    response: ModelResponse, *, latency_ms: float | None = None, source: CallSource | None = None
) -> None:
    """Set the given values; None keeps the old value."""
    metadata = response.metadata = dict(response.metadata or {})
    given = {"latency_ms": latency_ms, "source": source}
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


def _get_stamp(response: ModelResponse) -> dict[str, Any]:
    found = (response.metadata or {}).get(KEY)
    return dict(found) if isinstance(found, dict) else {}
