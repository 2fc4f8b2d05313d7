"""Secret parts of request headers: everything but known harmless headers."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from ci_agent_eval.redaction.environment_secrets import find_secrets

_HARMLESS = frozenset(
    {
        "accept", "accept-charset", "accept-encoding", "accept-language", "cache-control",
        "connection", "content-encoding", "content-length", "content-type", "host",
        "mcp-protocol-version", "origin", "prefer", "traceparent", "user-agent",
    }
)  # fmt: skip
"""Headers whose values are common words in reports, such as `application/json`."""

_BETWEEN = re.compile(r"[\s;,]+")
_BASIC = re.compile(r"(?i:basic)\s+(\S+)")


def find_header_secrets(name: str, value: str) -> Iterator[str]:
    """Yield the secrets of a header: its value, its words, and the values of its cookies.

    Header names say little (`X-Desk`), so every header counts as secret unless it is known to be
    harmless.
    """
    if name.strip().lower() in _HARMLESS:
        yield from find_secrets(name, value)
        return
    words = [word for word in _BETWEEN.split(value) if word]
    settings = [word.partition("=")[2].strip('"') for word in words]
    for secret in (value, *words, *settings, *_decode_basic(value)):
        yield from find_secrets("SECRET", secret)


def _decode_basic(value: str) -> Iterator[str]:
    """Yield `user:password` and the password of RFC 7617 credentials."""
    found = _BASIC.fullmatch(value.strip())
    if found is None:
        return
    try:
        both = base64.b64decode(found[1], validate=True).decode("utf-8")
    except ValueError:
        return
    yield from (both, both.partition(":")[2])
