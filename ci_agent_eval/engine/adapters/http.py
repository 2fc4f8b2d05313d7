"""An HTTP endpoint as an agent: the prompt goes out as JSON, the answer comes back as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import httpx2
from pydantic import Field, JsonValue, PositiveInt, SkipValidation

from ci_agent_eval.contract.fields import Seconds, TextMapping, validate_fields
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.stops import Stop
from ci_agent_eval.engine.adapters.protocol import AgentTask
from ci_agent_eval.engine.infrastructure_errors import ModelError
from ci_agent_eval.engine.stops import CONTEXT_WINDOW
from ci_agent_eval.model_traffic.gateway import serve_processes
from ci_agent_eval.model_traffic.network_guard import is_local
from ci_agent_eval.recording import Reply

CAP_BYTES = 4_194_304
"""Size limit of an answer."""

GATEWAY_HEADER = "X-Model-Gateway"
"""Header with the gateway's address for the request, for endpoints on the loopback."""

DEFAULT_BODY: Mapping[str, JsonValue] = {"message": "{prompt}", "messages": "{messages}"}

_TOKENS: Mapping[str, tuple[str, ...]] = {
    "input": ("input", "input_tokens", "prompt_tokens"),
    "output": ("output", "output_tokens", "completion_tokens"),
    "cached": ("cached", "cached_tokens", "cache_read_tokens"),
}
_TOO_MANY_REQUESTS = 429
_MISSING = object()

Address = Annotated[str, Field(pattern=r"^https?://[^\x00]+$"), "an http or https address"]
JsonPointer = Annotated[str, Field(pattern="^/"), "a JSON pointer, such as /text"]


@dataclass(frozen=True)
class HTTPAgent:
    """An endpoint that answers `POST` with JSON.

    In `body`, `{prompt}` is replaced by the message and the text `{messages}` by the history.
    The other mappings are JSON pointers (RFC 6901) into the answer:
    `/choices/0/message/content`. Missing values are not measured, but `text` is required.
    Redirects are not followed. An endpoint on the loopback gets the address of the gateway in the
    header `X-Model-Gateway`; it appends `/openai/v1`, `/anthropic` or another provider's name, and
    uses the result as its model's base URL for this request.
    """

    url: Address
    name: str | None = None
    model: str | None = None
    headers: TextMapping = field(default_factory=dict, repr=False)
    body: SkipValidation[JsonValue] = field(default_factory=lambda: dict(DEFAULT_BODY))
    text: JsonPointer = "/text"
    tool_calls: JsonPointer = "/tool_calls"
    """A list of objects with `name` and optional `id`, `arguments`, `result`, `error`."""
    usage: JsonPointer = "/usage"
    """An object with `input`, `output`, `cached`, or the names of OpenAI and others."""
    cost_usd: JsonPointer = "/cost_usd"
    finish_reason: JsonPointer = "/finish_reason"
    """The provider's reason why the model stopped: `length`, `content_filter`, ..."""
    timeout_s: Seconds = 60.0
    """Seconds for one step of the request: connecting, or reading the next bytes."""
    cap_bytes: PositiveInt = CAP_BYTES
    environ: SkipValidation[Mapping[str, str]] = field(
        default_factory=lambda: os.environ, repr=False
    )
    """Names the base URLs to which the gateway forwards."""

    def __post_init__(self) -> None:
        validate_fields(self)

    records_itself: ClassVar[bool] = True

    @property
    def label(self) -> str:
        """The agent's name, or the endpoint's host and path; a query may be secret."""
        return self.name or self._address

    @property
    def _address(self) -> str:
        url = httpx2.URL(self.url)
        return f"{url.host}{url.path}"

    async def answer(self, work: AgentTask) -> None:
        """Send the prompt and record the answer as a single turn."""
        placeholders = {"{prompt}": work.prompt, "{messages}": to_jsonable(list(work.history))}
        try:
            status, data = await self._post(fill_template(self.body, placeholders))
        except httpx2.HTTPError as error:
            raise ModelError(
                f"{self._address} could not be asked: {type(error).__name__}: {error}"
            ) from error
        work.rate_limited += status == _TOO_MANY_REQUESTS
        if not 200 <= status < 300:
            if _is_context_overflow(data):
                work.stop = Stop(
                    "context_window", f"{self._address} answered: {_quote_start(data)}"
                )
                return
            raise ModelError(f"{self._address} answered with status {status}: {_quote_start(data)}")
        work.set_reply(self.parse_reply(data))

    def parse_reply(self, data: bytes) -> Reply:
        """Parse an answer. Raises ModelError if it is not JSON or has no text."""
        try:
            answer = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"{self._address} answered no JSON: {_quote_start(data)}") from error
        text = resolve_pointer(answer, self.text, missing=_MISSING)
        text = "" if text is None else text
        if not isinstance(text, str):
            raise ModelError(
                f"{self._address} answered without a text at {self.text}: {_quote_start(data)}"
            )
        calls = resolve_pointer(answer, self.tool_calls)
        return Reply(
            text=text,
            tool_calls=[c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else (),
            usage=_parse_usage(resolve_pointer(answer, self.usage)),
            cost_usd=_parse_number(resolve_pointer(answer, self.cost_usd)),
            finish_reason=str(reason)
            if (reason := resolve_pointer(answer, self.finish_reason))
            else None,
        )

    async def _post(self, body: JsonValue) -> tuple[int, bytes]:
        if not is_local(httpx2.URL(self.url).host):
            return await self._send(body, self.headers)
        with serve_processes(self.environ) as address:
            added = {} if address is None else {GATEWAY_HEADER: address.url}
            return await self._send(body, {**self.headers, **added})

    async def _send(self, body: JsonValue, headers: Mapping[str, str]) -> tuple[int, bytes]:
        async with (
            httpx2.AsyncClient(timeout=self.timeout_s, follow_redirects=False) as client,
            client.stream("POST", self.url, json=body, headers=dict(headers)) as response,
        ):
            data = bytearray()
            async for chunk in response.aiter_bytes():
                data += chunk
                if len(data) > self.cap_bytes:
                    raise ModelError(f"{self._address} answered more than {self.cap_bytes} bytes")
            return response.status_code, bytes(data)


def fill_template(template: JsonValue, placeholders: Mapping[str, JsonValue]) -> JsonValue:
    """Replace placeholders in a template; a text that is a placeholder becomes its value."""
    if isinstance(template, str):
        if template in placeholders:
            return placeholders[template]
        for placeholder, value in placeholders.items():
            if isinstance(value, str):
                template = template.replace(placeholder, value)
        return template
    if isinstance(template, list):
        return [fill_template(item, placeholders) for item in template]
    if isinstance(template, dict):
        return {name: fill_template(item, placeholders) for name, item in template.items()}
    return template


def resolve_pointer(value: Any, pointer: str, missing: Any = None) -> Any:
    """Return the value at a JSON pointer, or `missing`."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value.get(name, missing)
        elif isinstance(value, list) and name.isascii() and name.isdigit():
            value = value[int(name)] if int(name) < len(value) else missing
        else:
            return missing
    return value


def _parse_usage(value: Any) -> dict[str, int] | None:
    if not isinstance(value, dict):
        return None
    found = {
        name: next((value[key] for key in keys if isinstance(value.get(key), int)), None)
        for name, keys in _TOKENS.items()
    }
    if found["input"] is None or found["output"] is None:
        return None
    return {name: count for name, count in found.items() if count is not None}


def _parse_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_context_overflow(data: bytes) -> bool:
    """Return whether an OpenAI-compatible API reports that the request does not fit the model."""
    with suppress(ValueError, RecursionError):
        return bool(resolve_pointer(json.loads(data), "/error/code") == CONTEXT_WINDOW)
    return False


def _quote_start(data: bytes) -> str:
    return repr(data[:200].decode("utf-8", "replace"))
