"""HTTP client for the provider, which forwards requests and answers unchanged."""

from __future__ import annotations

import http.cookiejar
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import httpx2

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.forwarding.headers import Headers

ProviderError = httpx2.HTTPError
"""Raised if the provider does not answer or its answer is incomplete."""

ProviderTimeout = httpx2.TimeoutException
ProviderResponse = httpx2.Response
ProviderClient = httpx2.AsyncClient


@dataclass(frozen=True, slots=True)
class Upstream:
    """The address of the provider."""

    origin: str
    """Scheme, host and port."""
    prefix: bytes = b""
    """The prefix of all paths."""

    def build_target(self, path: bytes, query: bytes) -> bytes:
        """Return path and query of a request, byte for byte as sent by the client."""
        return self.prefix + path + (b"?" + query if query else b"")


def parse_upstream(text: str, name: str) -> Upstream:
    """Parse the address that the option or variable `name` holds.

    Raises InputError for invalid URLs and parts after the path.
    """
    example = f"Give it as in {name}{' ' if name.startswith('-') else '='}https://api.openai.com"
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL as error:
        raise InputError(f"{name} is not an address ({error}). {example}") from error
    if url.scheme not in {"http", "https"} or not url.host:
        raise InputError(f"{name} has to begin with http:// or https:// and a host. {example}")
    if url.userinfo or url.query or url.fragment:
        raise InputError(
            f"{name} holds more than a host and a path. Leave out user, query and fragment: "
            "the clients send their own credentials, and these are passed on."
        )
    prefix = url.raw_path.rstrip(b"/")
    return Upstream(str(url.copy_with(raw_path=b"/")).rstrip("/"), prefix)


def open_client(*, connect_s: float, read_timeout_s: float) -> ProviderClient:
    """Create the HTTP client; `read_timeout_s` is the read timeout in seconds."""
    # The proxy stores no cookies, which would mix those of its clients.
    no_cookies = http.cookiejar.CookieJar(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
    return httpx2.AsyncClient(
        cookies=no_cookies,
        follow_redirects=False,
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100),
        timeout=httpx2.Timeout(read_timeout_s, connect=connect_s, pool=None),
    )


async def send_request(
    client: ProviderClient,
    origin: str,
    method: str,
    target: bytes,
    *,
    headers: Headers,
    content: bytes | AsyncIterator[bytes] | None,
) -> ProviderResponse:
    """Send a request and return the streamed response. Raises ProviderError."""
    request = httpx2.Request(
        method,
        origin,
        headers=headers,
        content=content,
        extensions={"target": target},
    )
    return await client.send(request, stream=True)


_CODINGS = {"", "identity", "gzip", "deflate"}
"""The codings that the library always decodes. Requests ask for uncoded answers."""


def is_decodable(coding: str) -> bool:
    """Return whether these content codings can be decoded."""
    return {name.strip().lower() for name in coding.split(",")} <= _CODINGS


def decode_body(raw: bytes, coding: str) -> Iterator[bytes]:
    """Yield the decoded bytes of a complete body. Raises ProviderError."""
    if not coding:
        return iter([raw])
    response = httpx2.Response(200, headers={"content-encoding": coding}, content=iter([raw]))
    return response.iter_bytes()
