"""Which headers a proxy hands on: all but those that belong to one connection (RFC 9110, 7.6.1)."""

from __future__ import annotations

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]
"""As they came: repeated names stay repeated, and in order."""

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

    `plain` asks for an answer without compression, and leaves the body's length to whoever
    sends it.
    """
    ours = {b"host", b"expect"} | ({b"accept-encoding", b"content-length"} if plain else set())
    kept = _drop_headers(keep_end_to_end(headers), ours)
    return [*kept, (b"accept-encoding", b"identity")] if plain else kept


def keep_end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers that are meant for more than the next hop, their names in lower case."""
    lowered = [(name.lower(), value) for name, value in headers]
    named = b",".join(value for name, value in lowered if name == b"connection")
    local = {token.strip().lower() for token in named.split(b",")}
    # What a message means is no matter of one connection, whatever its sender says of it.
    return _drop_headers(lowered, _HOP_BY_HOP | (local - {b"content-length", b"content-type"}))


def replace_body_headers(headers: Headers, length: int | None = None) -> Headers:
    """Return headers without those that describe the bytes, which are others now."""
    kept = _drop_headers(headers, _BODY_HEADERS)
    return kept if length is None else [*kept, (b"content-length", str(length).encode())]


def get_header(headers: Headers, name: bytes) -> str:
    """Return a header's values, joined; empty if it is not there. Names are in lower case."""
    return b", ".join(v for k, v in headers if k == name).decode("latin-1").strip()


def _drop_headers(headers: Headers, names: set[bytes]) -> Headers:
    return [(name, value) for name, value in headers if name not in names]
