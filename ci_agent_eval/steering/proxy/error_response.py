"""Error responses of the proxy in the format of the requested API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.model_traffic.formats.error_answers import (
    build_anthropic_error,
    build_openai_error,
)
from ci_agent_eval.model_traffic.formats.json_values import Json, render_compact_json

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
            self._build_anthropic() if api == "messages" else self._build_openai()
        )

    def _build_openai(self) -> Json:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return build_openai_error(self.message, kind, self.code)

    def _build_anthropic(self) -> Json:
        default = "invalid_request_error" if self.status < 500 else "api_error"
        return build_anthropic_error(self.message, _ANTHROPIC.get(self.status, default))
