"""What the proxy itself has to say, in the shape of the API that was asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.steering.proxy.sse import Json, render_compact_json

Api = Literal["chat", "responses", "messages"]

_ANTHROPIC = {413: "request_too_large", 504: "timeout_error"}


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An answer that did not come from the provider."""

    status: int
    code: str
    sentence: str

    def body(self, api: Api | None) -> bytes:
        """Return the JSON that clients of this API make an exception of."""
        return render_compact_json(
            _render_anthropic(self) if api == "messages" else _render_openai(self)
        )


def _render_openai(told: ErrorResponse) -> Json:
    kind = "invalid_request_error" if told.status < 500 else "server_error"
    error = {"message": told.sentence, "type": kind, "param": None, "code": told.code}
    return {"error": error}


def _render_anthropic(told: ErrorResponse) -> Json:
    usual = "invalid_request_error" if told.status < 500 else "api_error"
    kind = _ANTHROPIC.get(told.status, usual)
    return {"type": "error", "error": {"type": kind, "message": told.sentence}}
