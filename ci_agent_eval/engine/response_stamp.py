"""Figures of ours on a model's response: how long it took, and where it came from.

They travel in the response's `metadata`, which PydanticAI keeps with the message and
never sends to a model. The layer that knows a figure sets it: the rate layer the latency
of the request itself, the cassette that an answer was replayed.
"""

from __future__ import annotations

from typing import Any

from pydantic_ai.messages import ModelResponse

from ci_agent_eval.contract.trajectory import CallSource

KEY = "ci_agent_eval"


def stamp_response(
    response: ModelResponse, *, latency_ms: float | None = None, source: CallSource | None = None
) -> None:
    """Set what is given; what stands there already stays where nothing is given."""
    metadata = response.metadata = dict(response.metadata or {})
    given = {"latency_ms": latency_ms, "source": source}
    metadata[KEY] = {
        **_get_stamp(response),
        **{name: value for name, value in given.items() if value is not None},
    }


def get_latency_ms(response: ModelResponse) -> float | None:
    """Return the milliseconds the request took, if they were stamped on it."""
    value = _get_stamp(response).get("latency_ms")
    return value if isinstance(value, int | float) else None


def get_source(response: ModelResponse) -> CallSource:
    """Return where the response came from; `live` where nobody says otherwise."""
    value = _get_stamp(response).get("source", "live")
    return value if value in ("replayed", "scripted") else "live"


def _get_stamp(response: ModelResponse) -> dict[str, Any]:
    found = (response.metadata or {}).get(KEY)
    return dict(found) if isinstance(found, dict) else {}
