"""Which parts of a request's headers are secret: all but what describes the request itself."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator

from ci_agent_eval.redaction.environment_secrets import find_secrets

_HARMLESS = frozenset(
    {
        "accept",
        "accept-charset",
        "accept-encoding",
        "accept-language",
        "cache-control",
        "connection",
        "content-encoding",
        "content-length",
        "content-type",
        "host",
        "mcp-protocol-version",
        "origin",
        "prefer",
        "traceparent",
        "user-agent",
    }
)
"""Their values are words that reports are full of: `application/json`."""

_BETWEEN = re.compile(r"[\s;,]+")
_BASIC = re.compile(r"(?i:basic)\s+(\S+)")


def find_header_secrets(name: str, value: str) -> Iterator[str]:
    """Yield what is secret in a header: its value, the words of it, what a cookie is set to.

    Names say little here (`X-Desk`), so every header counts as secret that is not known not
    to be.
    """
    if name.strip().lower() in _HARMLESS:
        yield from find_secrets(name, value)
        return
    words = [word for word in _BETWEEN.split(value) if word]
    settings = [word.partition("=")[2].strip('"') for word in words]
    for secret in (value, *words, *settings, *_decode_basic(value)):
        yield from find_secrets("SECRET", secret)


def _decode_basic(value: str) -> Iterator[str]:
    """Yield the user with the password, and the password, of RFC 7617's credentials."""
    found = _BASIC.fullmatch(value.strip())
    if found is None:
        return
    try:
        both = base64.b64decode(found[1], validate=True).decode("utf-8")
    except ValueError:
        return
    yield from (both, both.partition(":")[2])
