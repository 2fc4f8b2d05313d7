"""Error bodies of the providers, and refusals: answers that no client retries."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from ci_agent_eval.model_traffic.formats.json_values import Json, render_compact_json
from ci_agent_eval.model_traffic.formats.protocol import HTTPAnswer


def build_refusal_answer(
    body: Mapping[str, object], headers: Mapping[str, str] | None = None
) -> HTTPAnswer:
    """Build an answer with status 400; a 429 is retried by Strands and smolagents.

    `x-should-retry` is the header of OpenAI's and Anthropic's clients.
    """
    return HTTPAnswer(
        status=400,
        headers={"content-type": "application/json", "x-should-retry": "false", **(headers or {})},
        chunks=(render_compact_json(body),),
    )


def build_openai_refusal(message: str) -> HTTPAnswer:
    """Build the refusal of OpenAI's formats."""
    return build_refusal_answer(
        build_openai_error(message, "invalid_request_error", "budget_exceeded")
    )


def build_openai_error(message: str, kind: str, code: str) -> Json:
    """Build the error body of OpenAI's formats."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}


def build_anthropic_error(message: str, kind: str) -> Json:
    """Build the error body of Anthropic's format."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def build_error_answer(status: int, message: str) -> HTTPAnswer:
    """Build an error that the clients of all formats can show, for a request of any.

    They may send a request again only after a failure of the provider (502).
    """
    error = {"type": "invalid_request_error", "message": message, "param": None, "code": "gateway"}
    body = {"type": "error", "error": error, "message": message}
    retried = {} if status == HTTPStatus.BAD_GATEWAY else {"x-should-retry": "false"}
    headers = {"content-type": "application/json", **retried}
    return HTTPAnswer(status, headers, (render_compact_json(body),))
