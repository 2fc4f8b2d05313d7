"""Redaction of values in data by their keys, such as `password`. Pure.

Narrower than the rules for environment variables: data has a `key`, a `next_token` and `tokens`.
"""

from __future__ import annotations

import re
from typing import Any

from ci_agent_eval.redaction.known_secrets import REDACTED

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_SECRET_KEY = re.compile(
    r"(?:^|_)(?:[A-Z0-9]*(?:PASSWORD|PASSWD|PASSPHRASE|PASSCODE)S?|SECRETS?|CREDENTIALS?"
    r"|(?:API|ACCESS|PRIVATE|SECRET|SIGNING|ENCRYPTION)_?KEYS?|AUTHORIZATION|COOKIES?"
    r"|[A-Z0-9]*TOKEN|CLIENTSECRET)$"
)
_NO_SECRET = re.compile(
    r"(?:^|_)(?:NEXT|PREV|PREVIOUS|PAGE|CONTINUATION|CURSOR|SYNC|EOS|BOS|PAD|STOP|UNK"
    r"|FIRST|LAST|PER)_?TOKEN$"
)
_ANY = re.compile(r"pass|secret|token|key|credential|authorization|cookie", re.IGNORECASE)


def _compile_pair(escapes: int) -> re.Pattern[str]:
    """Return the pattern of a key and its text, in quotes with `escapes` backslashes.

    Both have the same quotes; truncated text lacks the closing one.
    """
    quote = rf"(?<!\\)(?P<quote>\\{{{escapes}}}[\"'])"
    inside = rf"\\{{{2 * escapes + 2}}}|\\{{{2 * escapes + 1}}}[\"']|\\+(?:[^\\\"']|$)|[^\\]"
    return re.compile(
        rf"{quote}(?P<key>[A-Za-z][A-Za-z0-9_ .-]{{0,60}})(?P=quote)\s{{0,4}}:\s{{0,4}}(?P=quote)"
        rf"(?P<value>(?:(?!(?P=quote))(?:{inside}))+)",
        re.DOTALL,
    )


_PAIRS = tuple(map(_compile_pair, (0, 1, 3)))
"""For JSON and Python's `repr` of a dict, for these in JSON, and for these in JSON again."""


def is_secret_key(key: str) -> bool:
    """Say whether a text or number under this key of a JSON object is secret."""
    upper = _WORD.sub("_", key).upper().rstrip("_0123456789")
    return bool(_SECRET_KEY.search(upper)) and not _NO_SECRET.search(upper)


def redact_value(key: str, value: Any) -> Any:
    """Return the value under a key, with secret texts and numbers redacted.

    True, False, null and an empty text are never secret; an object is judged by its own keys.
    Without a secret the same object is returned.
    """
    if not is_secret_key(key):
        return value
    if isinstance(value, list):
        items = [_redact_scalar(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    return _redact_scalar(value)


def _redact_scalar(value: Any) -> Any:
    is_secret = isinstance(value, str | int | float) and not isinstance(value, bool)
    return REDACTED if is_secret and value != "" else value


def remove_secret_pairs(text: str) -> str:
    """Redact the secret values of JSON or of Python's `repr` of a dict in a text."""
    if _ANY.search(text):
        for pattern in _PAIRS:
            text = pattern.sub(_remove_value, text)
    return text


def _remove_value(pair: re.Match[str]) -> str:
    if not is_secret_key(pair["key"]):
        return pair[0]
    return pair[0][: pair.start("value") - pair.start()] + REDACTED
