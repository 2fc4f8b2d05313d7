"""The forms of a secret in files (escaped, quoted, encoded). Pure."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

_SPACE = re.compile(r"[\t\n\r\x0b\x0c]")
_SPACES = re.compile(r"\s+")
# Listed instead of the valid characters, whose ranges take 6 ms to compile.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def build_text_forms(secret: str) -> set[str]:
    """Return the secret as text: whitespace collapsed, quoted by `repr` or JSON, and these in XML.

    Every form contains the secret's runs of letters and digits unchanged.
    """
    plain = {secret, _SPACE.sub(" ", secret), _SPACES.sub(" ", secret)}
    quoted = {form for text in plain for form in _build_quoted_forms(text)}
    twice = {form for text in _build_quoted_forms(secret) for form in _build_quoted_forms(text)}
    in_json = {form for text in quoted for form in _build_json_forms(text)}
    texts = quoted | twice | in_json
    in_xml = {form for text in texts for form in _build_xml_forms(text)}
    in_url = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    return texts | in_xml | {form for text in in_xml for form in _build_json_forms(text)} | in_url


def _build_quoted_forms(text: str) -> Iterator[str]:
    """Yield the text as it appears inside Python's and JSON's quotes."""
    yield text
    yield from _build_json_forms(text)
    for inside in (repr(f'"{text}')[2:-1], ascii(f'"{text}')[2:-1]):
        # The leading " makes Python quote with ' and escape it. If the surrounding text holds a '
        # and no ", Python quotes with " and escapes neither.
        yield inside
        yield inside.replace("\\'", "'")


def _build_json_forms(text: str) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _build_xml_forms(text: str) -> Iterator[str]:
    """Yield the text as escaped by ElementTree, `html.escape` and other XML writers."""
    escaped = escape_invalid_xml(text)
    content = escaped.replace("&", "&amp;").replace("<", "&lt;")
    closed = content.replace(">", "&gt;")
    attribute = closed.replace('"', "&quot;")
    yield from (escaped, content, closed)
    yield _SPACE.sub(lambda match: f"&#{ord(match.group()):02};", attribute)
    yield _SPACE.sub(lambda match: f"&#{ord(match.group())};", attribute)
    yield from (attribute, attribute.replace("'", "&apos;"), html.escape(escaped, quote=True))
    yield html.escape(text, quote=True)


def escape_invalid_xml(text: str) -> str:
    """Escape characters that XML cannot hold as pytest does (`bin_xml_escape`)."""
    return _NOT_XML.sub(lambda match: _escape_character(ord(match.group())), text)


def _escape_character(number: int) -> str:
    return f"#x{number:02X}" if number <= 0xFF else f"#x{number:04X}"


def build_base64_forms(secret: bytes) -> Iterator[str]:
    """Yield the base64 text that every encoding of a text with the secret contains.

    The secret may begin at any of three offsets within a group of three bytes; characters shared
    with neighboring bytes are excluded.
    """
    for offset in range(3):
        padded = b"\0" * offset + secret
        whole = len(padded) // 3 * 4
        start = (0, 2, 3)[offset]
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(padded).decode()[start:whole]
    yield base64.b64encode(secret).decode()
