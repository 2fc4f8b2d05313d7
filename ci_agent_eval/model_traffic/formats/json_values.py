"""Reading of unvalidated JSON: a wrong type reads as an absent value."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.trajectory import Attachment, TokenUsage, ToolCall

Json = dict[str, object]
"""An unvalidated JSON object."""

_MAX_COUNT = 2**53

# Google's clients use the alphabet of addresses. Line ends and missing padding are allowed.
_STANDARD = str.maketrans({"-": "+", "_": "/", "=": "", "\r": "", "\n": ""})
_DATA_URL = re.compile(r"data:([^;,]*)(?:;[^,]*)?;base64,", re.IGNORECASE)


class UnreadableTrafficError(ValueError):
    """Raised for a body that does not have the shape of its format; the message says where."""


def parse_object(text: bytes | str) -> Json | None:
    """Parse a text as a JSON object; None for other texts."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def render_compact_json(value: object) -> bytes:
    """Render compact JSON in ASCII, which preserves lone surrogates."""
    return json.dumps(value, separators=(",", ":")).encode()


def get_object(value: Mapping[str, object], *keys: str) -> Json:
    """Return the object at a path of keys; empty if there is none."""
    found: object = value
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found if isinstance(found, dict) else {}


def get_objects(value: Mapping[str, object], key: str) -> list[Json]:
    """Return the objects in the list at a key; empty if there is none."""
    return list_objects(value.get(key))


def list_objects(value: object) -> list[Json]:
    """Return the objects in a list; empty for other values."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def get_text(value: Mapping[str, object], key: str) -> str | None:
    """Return the text at a key; None if there is none."""
    found = value.get(key)
    return clean_text(found) if isinstance(found, str) else None


def get_count(value: Mapping[str, object], *keys: str) -> int | None:
    """Return the whole, non-negative number at a path of keys; None if there is none."""
    found = get_object(value, *keys[:-1]).get(keys[-1])
    is_count = isinstance(found, int) and not isinstance(found, bool) and 0 <= found <= _MAX_COUNT
    return found if is_count else None  # type: ignore[return-value] # mypy loses the narrowing


def build_usage_beside_cache(
    uncached: int | None,
    output: int | None,
    *,
    read: int | None,
    written: int | None,
    reasoning: int | None = None,
) -> TokenUsage | None:
    """Build the usage of a provider whose input tokens are without those of the cache."""
    if uncached is None or output is None:
        return None
    return TokenUsage(
        input=uncached + (read or 0) + (written or 0),
        output=output,
        cached=read or 0,
        reasoning=reasoning,
    )


def pick_settings(value: Mapping[str, object], names: Sequence[str]) -> dict[str, JsonValue]:
    """Return the values of the given names that are set and not empty."""
    found = {name: value.get(name) for name in names}
    return {name: to_jsonable(item) for name, item in found.items() if item not in _UNSET}


_UNSET: tuple[object, ...] = (None, {}, [])


def parse_arguments(arguments: object) -> object:
    """Parse a tool's arguments that are the text of a JSON object; return others unchanged."""
    parsed = parse_object(arguments) if isinstance(arguments, str) else None
    return arguments if parsed is None else parsed


def build_tool_call(
    call_id: object,
    name: object,
    arguments: object,
    *,
    result: object = None,
    error: str | None = None,
) -> ToolCall:
    """Build a tool call; no arguments and an empty text mean an empty object."""
    parsed = parse_arguments(arguments)
    return ToolCall(
        id=clean_text(call_id) if isinstance(call_id, str) and call_id else None,
        name=clean_text(name) if isinstance(name, str) else "",
        arguments={} if parsed is None or parsed == "" else to_jsonable(parsed),
        result=to_jsonable(result),
        error=error,
    )


def join_texts(parts: Sequence[Mapping[str, object]], key: str = "text") -> str:
    """Join the texts of content parts."""
    return "".join(text for part in parts if (text := get_text(part, key)) is not None)


def read_base64(data: object, media_type: object) -> Attachment:
    """Return the attachment of base64 data; without a hash if it cannot be decoded."""
    name = clean_text(media_type) if isinstance(media_type, str) and media_type else None
    if not isinstance(data, str):
        return Attachment(media_type=name)
    text = data.translate(_STANDARD)
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return Attachment(media_type=name)
    digest = hashlib.sha256(content).hexdigest()
    return Attachment(media_type=name, sha256=digest, size_bytes=len(content))


def read_url(url: object, media_type: object = None) -> Attachment:
    """Return the attachment of a data URL; of another address only the media type."""
    found = _DATA_URL.match(url) if isinstance(url, str) else None
    if found is None:
        return read_base64(None, media_type)
    return read_base64(found.string[found.end() :], found.group(1) or media_type)
