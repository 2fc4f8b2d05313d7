"""The headers that a proxy forwards: all except those of one connection (RFC 9110, 7.6.1)."""

from __future__ import annotations

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]
"""Headers in their original order, including repeated names."""

_HOP_BY_HOP = {
    b"connection",
    b"keep-alive",
    b"proxy-authenticate",
    b"proxy-authorization",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"transfer-encoding",
    b"upgrade",
}
_BODY_HEADERS = {
    b"content-length",
    b"content-encoding",
    b"content-md5",
    b"content-digest",
    b"digest",
    b"etag",
    b"repr-digest",
}


def build_upstream_headers(headers: Iterable[tuple[bytes, bytes]], *, plain: bool) -> Headers:
    """Return a request's headers for the provider.

    With `plain`, request an uncompressed answer and omit the body's length, which the HTTP client
    adds.
    """
    replaced = {b"host", b"expect"} | ({b"accept-encoding", b"content-length"} if plain else set())
    kept = _drop_headers(get_end_to_end_headers(headers), replaced)
    return [*kept, (b"accept-encoding", b"identity")] if plain else kept


def get_end_to_end_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the end-to-end headers, with names in lower case."""
    lowered = [(name.lower(), value) for name, value in headers]
    connection_values = b",".join(value for name, value in lowered if name == b"connection")
    hop_names = {token.strip().lower() for token in connection_values.split(b",")}
    # These describe the message and are never hop-by-hop, even if `Connection` names them.
    return _drop_headers(lowered, _HOP_BY_HOP | (hop_names - {b"content-length", b"content-type"}))


def replace_body_headers(headers: Headers, length: int | None = None) -> Headers:
    """Return the headers for a changed body: without those that describe the old bytes."""
    kept = _drop_headers(headers, _BODY_HEADERS)
    return kept if length is None else [*kept, (b"content-length", str(length).encode())]


def get_header(headers: Headers, name: bytes) -> str:
    """Return a header's joined values; empty if missing. Names are in lower case."""
    return b", ".join(v for k, v in headers if k == name).decode("latin-1").strip()


def _drop_headers(headers: Headers, names: set[bytes]) -> Headers:
    return [(name, value) for name, value in headers if name not in names]
