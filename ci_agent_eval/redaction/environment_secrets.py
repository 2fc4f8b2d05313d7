"""Secret environment variables and request headers, and the secret parts of their values."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote

MIN_SECRET = 8
"""Minimum length of a secret; redacting shorter values would hide ordinary text."""

_DEEPEST = 8
_NUMBERED = re.compile(r"_?[0-9]+$")
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:TOKENS?|SECRETS?|PASSWORDS?|PASSWD|PASSPHRASE|PWD|PASS|API_?KEYS?|ACCESS_?KEY"
    r"|PRIVATE_?KEY|SIGNING_?KEY|ENCRYPTION_?KEY|CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|PAT|DSN"
    r"|CONN(?:ECTION)?_?STR(?:ING)?S?"
    r"|COOKIE|WEBHOOK(?:_URL)?|KEY|[A-Z0-9]*(?:TOKEN|SECRET|PASSWORD|APIKEY))(?:$|_)"
)
_BENIGN_NAME = re.compile(
    r"(?:^PWD$|^OLDPWD$|_(?:PATH|FILE|DIR|HOME|URL|URI|HOST|PORT|NAME|USER|ID|TYPE|MODE|METHOD"
    r"|SOCK|SOCKET|PROVIDER|BACKEND|DOMAIN|ISSUER|AUDIENCE|SCOPES?|REALM|ENABLED|LIMIT|COUNT|SIZE"
    r"|BUDGET|TTL|EXPIRY|EXPIRES|VERSION|REGION|ALGORITHM)$"
    r"|(?:^|_)(?:PUBLIC|CACHE|SORT|PRIMARY|FOREIGN)_KEYS?$|^(?:MAX|MIN|NUM)_)"
)
_SECRET_FOR_ALL_THAT = re.compile(r"WEBHOOK_UR[LI]$|(?:^|_)SECRET_(?:.*_)?ID$")
_MAY_MEAN_A_PATH = re.compile(r"(?:^|_)(?:CREDENTIALS?|CREDS?|COOKIE|AUTH)$")
_NEVER_A_PATH = re.compile(r"SECRET|TOKEN|KEY|PASS|PWD")
_PATH = re.compile(r"(?:\.{0,2}|~)/[^\n]*")

# The password of a URL may contain an @: the last one before the path ends it.
_URL_PASSWORD = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s:@/]{0,256}:([^\s/]{1,512})@")
_URL_REST = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^\s/]{1,512}/(\S{16,})")
# `Password=...;` of a connection string, `?password=...&` of a URL.
_SETTING = re.compile(
    r"(?i:(?:^|[;&?\s])[a-z_ ]{0,30}"
    r"(?:password|passwd|pwd|secret|token|key|signature|sig)[ ]?=[ ]?)"
    r"([^;&\s]{1,4096})"
)
_STRUCTURED = re.compile(r"://|;[^;=]*=|^\s*[\[{<]|^-----|[\r\n]")
_COMMON = frozenset({"required", "disabled", "optional", "undefined", "password", "changeme"})
_BENIGN_VALUE = re.compile(r"[a-z]{1,12}|[0-9]{1,9}")


def is_secret_name(name: str) -> bool:
    """Say whether a variable of this name holds a secret."""
    upper = _NUMBERED.sub("", name.upper().replace("-", "_"))
    if _SECRET_FOR_ALL_THAT.search(upper):
        return True
    return bool(_SECRET_NAME.search(upper)) and not _BENIGN_NAME.search(upper)


def find_secrets(name: str, value: str) -> Iterator[str]:
    """Yield the secrets of a variable: its value with its parts, or a password in it."""
    if is_secret_name(name) and not _is_path(name, value):
        yield from _split_value(value)
        yield from _find_json_secrets(value)
        yield from (match[1] for match in _URL_REST.finditer(value))
    for pattern in (_URL_PASSWORD, _SETTING):
        for match in pattern.finditer(value):
            yield from _skip_common(match[1])
            yield from _skip_common(unquote(match[1]))


def is_structured(secret: str) -> bool:
    """Say whether a value begins or ends like others of its format: a URL, JSON, a PEM file.

    Parts of its beginning or end are not secret; its secret parts are found separately.
    """
    return bool(_STRUCTURED.search(secret))


def _is_path(name: str, value: str) -> bool:
    upper = name.upper().replace("-", "_")
    if not _MAY_MEAN_A_PATH.search(upper) or _NEVER_A_PATH.search(upper):
        return False
    return bool(_PATH.fullmatch(value.strip()))


def _split_value(value: str) -> Iterator[str]:
    """Yield the value, and each line of a multi-line value except a PEM file's frame."""
    stripped = value.strip()
    yield from _skip_common(stripped)
    lines = [line.strip() for line in stripped.splitlines()]
    if len(lines) > 1:
        for line in lines:
            if not line.startswith("-----"):
                yield from _skip_common(line)


def _skip_common(value: str) -> Iterator[str]:
    common = value.lower() in _COMMON or _BENIGN_VALUE.fullmatch(value)
    if len(value) >= MIN_SECRET and not common:
        yield value


def _find_json_secrets(value: str) -> Iterator[str]:
    """Yield the secret texts of a JSON value, such as a cloud service account."""
    if not value.lstrip().startswith(("{", "[")):
        return
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return
    yield from _walk_secrets(document, "", _DEEPEST)


def _walk_secrets(value: Any, name: str, depth: int) -> Iterator[str]:
    if isinstance(value, str) and is_secret_name(name):
        yield from _split_value(value)
    elif isinstance(value, dict) and depth:
        for key, item in value.items():
            yield from _walk_secrets(item, key, depth - 1)
    elif isinstance(value, list) and depth:
        for item in value:
            yield from _walk_secrets(item, name, depth - 1)


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
