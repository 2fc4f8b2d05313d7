"""The proxy's error responses, in the format of the requested API."""

from __future__ import annotations

from dataclasses import dataclass

from ci_agent_eval.model_traffic.formats.error_answers import (
    build_anthropic_error,
    build_openai_error,
)
from ci_agent_eval.model_traffic.formats.json_values import render_compact_json
from ci_agent_eval.model_traffic.forwarding.upstream import ProviderError, ProviderTimeout

_ANTHROPIC = {413: "request_too_large", 504: "timeout_error"}


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error response of the proxy itself."""

    status: int
    code: str
    message: str

    def body(self, *, is_anthropic: bool) -> bytes:
        """Return the JSON error body of Anthropic's or OpenAI's API."""
        is_clients = self.status < 500
        if is_anthropic:
            default = "invalid_request_error" if is_clients else "api_error"
            kind = _ANTHROPIC.get(self.status, default)
            return render_compact_json(build_anthropic_error(self.message, kind))
        kind = "invalid_request_error" if is_clients else "server_error"
        return render_compact_json(build_openai_error(self.message, kind, self.code))


NO_WEBSOCKETS = ErrorResponse(
    # Codex falls back to HTTP at once only on this status.
    426,
    "websocket_unsupported",
    "This proxy carries no WebSockets. Use the API over HTTP, where answers can be streamed, "
    "or go to the provider directly.",
)

NO_FORWARDING = ErrorResponse(
    400,
    "not_a_path",
    "This proxy stands for one provider and forwards to no other. Give clients its address as "
    "the API's base URL, not as an HTTP proxy.",
)


def build_internal_error(error: Exception) -> ErrorResponse:
    """Build the response for a bug, without the error's text, which may contain the request."""
    return ErrorResponse(
        500,
        "proxy_error",
        f"This proxy failed on the request (unexpected {type(error).__name__}). This is a bug; "
        "go to the provider directly.",
    )


def build_size_error(limit: int) -> ErrorResponse:
    """Build the response for a request above `limit` bytes."""
    return ErrorResponse(
        413,
        "request_too_large",
        f"The request is larger than the {limit} bytes this proxy takes. Send less, or start "
        "`agent-eval steer proxy` with a larger --max-request-bytes.",
    )


def build_upstream_error(origin: str, error: ProviderError) -> ErrorResponse:
    """Build the response for a missing or incomplete answer of the provider at `origin`."""
    if isinstance(error, ProviderTimeout):
        return ErrorResponse(
            504,
            "upstream_timeout",
            f"{origin} did not answer this proxy in time ({type(error).__name__}). Try again, "
            "or start `agent-eval steer proxy` with a larger --timeout.",
        )
    return ErrorResponse(
        502,
        "upstream_unreachable",
        f"This proxy got no whole answer from {origin} ({type(error).__name__}). Look at its "
        "--upstream, and whether the provider is up.",
    )
