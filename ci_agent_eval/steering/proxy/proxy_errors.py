"""The proxy's error responses for unsupported requests and failures."""

from __future__ import annotations

from ci_agent_eval.model_traffic.forwarding.upstream import ProviderError, ProviderTimeout
from ci_agent_eval.steering.proxy.error_response import ErrorResponse

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
