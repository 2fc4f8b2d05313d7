"""Parse XML as a stream with expat: bounded memory, no entity expansion, no network.

Standard library only. `xml.etree` uses the same parser, but cannot refuse entity declarations and
keeps whole text nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from xml.parsers import expat

from ci_agent_eval.results.junit.sanitize import CleanReader, EncodingError, Readable

_CHUNK_BYTES = 64 * 1024
_MAX_TOKEN_BYTES = 64 * 1024 * 1024
_MAX_ENTITY_LENGTH = 64
_MAX_ENTITIES = 100
_CUT_OFF = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}
"""Errors of expat for a document that ends too early."""


class NotReadableError(Exception):
    """A handler refuses the document; the message has the reason."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The end of parsing. Elements reported before a problem stay valid."""

    replaced: int = 0
    """Number of characters that were replaced to make the file readable."""
    problem: str | None = None
    """The reason that the document could not be read to its end."""
    line: int = 0
    """1-based line of the problem; 0 for none."""


class XmlListener(Protocol):
    """A handler of the document's elements."""

    def attach(self, parser: expat.XMLParserType) -> None:
        """Set the handlers of the parser; they may raise NotReadableError."""


def parse_xml_stream(raw: Readable, listener: XmlListener) -> StreamEnd:
    """Parse until the end or a problem. Raises only errors of `raw`."""
    parser = _build_safe_parser()
    listener.attach(parser)
    try:
        reader = CleanReader(raw)
    except EncodingError as error:
        return StreamEnd(problem=str(error))
    try:
        _feed_parser(reader, parser)
    except expat.ExpatError as error:
        return StreamEnd(reader.replaced, _format_error(error), error.lineno)
    except (EncodingError, NotReadableError) as error:
        return StreamEnd(reader.replaced, str(error), parser.CurrentLineNumber)
    return StreamEnd(reader.replaced)


def _format_error(error: expat.ExpatError) -> str:
    if error.code in _CUT_OFF:
        return "it is cut off" if error.offset or error.lineno > 1 else "it is empty"
    return f"it is not well-formed XML ({expat.errors.messages[error.code]})"


def _feed_parser(reader: CleanReader, parser: expat.XMLParserType) -> None:
    """Feed the parser; an unfinished token gets larger and larger chunks, to keep time linear."""
    fed = 0
    size = _CHUNK_BYTES
    while chunk := reader.read(size):
        parser.Parse(chunk, False)
        fed += len(chunk)
        waiting = fed - parser.CurrentByteIndex
        if waiting > _MAX_TOKEN_BYTES:
            raise NotReadableError("one tag or comment is larger than 64 MiB")
        size = max(_CHUNK_BYTES, waiting)
    parser.Parse(b"", True)


def _build_safe_parser() -> expat.XMLParserType:
    # The encoding given here overrides the declared one: the reader has already converted.
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.EntityDeclHandler = _EntityGuard()
    return parser


class _EntityGuard:
    """Refuses entity declarations that allow entity expansion or external entity attacks."""

    def __init__(self) -> None:
        self.declared = 0

    def __call__(self, name: str, is_parameter: bool, value: str | None, *ids: str | None) -> None:
        self.declared += 1
        if value is None or is_parameter or any(ids):
            raise NotReadableError(f"it declares the external entity {name[:40]!r}")
        if "&" in value or "%" in value or len(value) > _MAX_ENTITY_LENGTH:
            raise NotReadableError(f"it declares the expanding entity {name[:40]!r}")
        if self.declared > _MAX_ENTITIES:
            raise NotReadableError(f"it declares more than {_MAX_ENTITIES} entities")
