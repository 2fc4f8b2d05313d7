"""Error responses of the proxy in the format of the requested API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.steering.proxy.sse import Json, render_compact_json

Api = Literal["chat", "responses", "messages"]

_ANTHROPIC = {413: "request_too_large", 504: "timeout_error"}


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error response of the proxy itself."""

    status: int
    code: str
    message: str

    def body(self, api: Api | None) -> bytes:
        """Return the JSON error body of an API."""
        return render_compact_json(
            _render_anthropic(self) if api == "messages" else _render_openai(self)
        )


def _render_openai(response: ErrorResponse) -> Json:
    kind = "invalid_request_error" if response.status < 500 else "server_error"
    error = {"message": response.message, "type": kind, "param": None, "code": response.code}
    return {"error": error}


def _render_anthropic(response: ErrorResponse) -> Json:
    default = "invalid_request_error" if response.status < 500 else "api_error"
    kind = _ANTHROPIC.get(response.status, default)
    return {"type": "error", "error": {"type": kind, "message": response.message}}
