"""Convert XML of any encoding to UTF-8 without forbidden characters, and parse it as a stream.

Test runners paste terminal output into XML; one ESC byte would make the whole file unreadable.
Characters that XML 1.0 forbids (https://www.w3.org/TR/xml/#charsets) are replaced by U+FFFD and
counted. expat parses with bounded memory, no entity expansion and no network; `xml.etree` uses
it too, but cannot refuse entity declarations and keeps whole text nodes.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from typing import NamedTuple, Protocol
from xml.parsers import expat

REPLACEMENT = "\ufffd"
_FORBIDDEN_MARK = "\uffff"
"""Replacement for undecodable bytes; forbidden in XML, too, so that one rule counts both."""

_CONTROLS = bytes(set(range(0x20)) - set(b"\t\n\r"))
_FORBIDDEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]"
    r"|&#(?:x([0-9a-fA-F]{1,32})|([0-9]{1,32}));"
)
_OPEN_REFERENCE = re.compile(r"&(?:#(?:x[0-9a-fA-F]{0,32}|[0-9]{0,32})?)?\Z")
_OPEN_REFERENCE_LENGTH = 36
_HEAD_LENGTH = 1024
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)


class Readable(Protocol):
    """A binary file."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes; none at the end."""
        ...


class NotReadableError(Exception):
    """A document that is refused; the message has the reason."""


def _mark_undecodable(error: UnicodeError) -> tuple[str, int]:
    """Decode undecodable bytes as the forbidden mark."""
    if isinstance(error, UnicodeDecodeError):
        return _FORBIDDEN_MARK, error.end
    raise error


codecs.register_error("ci_agent_eval.mark", _mark_undecodable)


class CleanReader:
    """A reader of UTF-8 without forbidden characters; the same for any size of chunks.

    References inside CDATA sections, where they are plain text, are treated like others.
    """

    def __init__(self, raw: Readable) -> None:
        self.replaced = 0
        """Number of characters replaced so far."""
        self._raw = raw
        self._head = self._read_head()
        self._encoding = _detect_encoding(self._head)
        self._decoder = _build_decoder(self._encoding)
        self._ascii_is_plain = self._encoding == "utf-8"
        self._held = ""
        self._at_end = False

    def read(self, size: int) -> bytes:
        """Return about `size` clean bytes; none at the end. Raises NotReadableError."""
        while not self._at_end:
            chunk = self._read_chunk(size)
            self._at_end = not chunk
            clean = chunk if self._is_clean(chunk) else self._clean(chunk)
            if clean:
                return clean
        return b""

    def _read_head(self) -> bytes:
        head = b""
        while len(head) < _HEAD_LENGTH and (more := self._raw.read(_HEAD_LENGTH - len(head))):
            head += more
        return head

    def _read_chunk(self, size: int) -> bytes:
        if self._head:
            head, self._head = self._head, b""
            return head
        return self._raw.read(size)

    def _is_clean(self, chunk: bytes) -> bool:
        """Return whether the chunk needs no change: a cheap check that is nearly always true."""
        return (
            bool(chunk)
            and self._ascii_is_plain
            and not self._held
            and chunk.isascii()
            and not chunk.endswith(b"&")
            and b"&#" not in chunk
            and len(chunk.translate(None, _CONTROLS)) == len(chunk)
            and not self._decoder.getstate()[0]
        )

    def _clean(self, chunk: bytes) -> bytes:
        try:
            text = self._held + self._decoder.decode(chunk, final=self._at_end)
        except UnicodeError as error:
            raise NotReadableError(f"its text is not {self._encoding}") from error
        self._held = ""
        if not self._at_end:
            text = self._hold_open_reference(text)
        return _FORBIDDEN.sub(self._replace, text).encode()

    def _hold_open_reference(self, text: str) -> str:
        """Hold back the start of a character reference that the next chunk may finish."""
        start = max(0, len(text) - _OPEN_REFERENCE_LENGTH)
        match = _OPEN_REFERENCE.search(text, start)
        if match is None:
            return text
        self._held = match.group()
        return text[: match.start()]

    def _replace(self, match: re.Match[str]) -> str:
        if match.lastindex is not None:
            base = 16 if match.lastindex == 1 else 10
            if _is_allowed(int(match.group(match.lastindex), base)):
                return match.group()
        self.replaced += 1
        return REPLACEMENT


def _is_allowed(code: int) -> bool:
    """Return whether XML 1.0 allows the character (production 2, Char)."""
    return (
        code in (0x9, 0xA, 0xD)
        or 0x20 <= code <= 0xD7FF
        or 0xE000 <= code <= 0xFFFD
        or 0x10000 <= code <= 0x10FFFF
    )


def _detect_encoding(head: bytes) -> str:
    """Detect the encoding by byte order mark, first bytes or declaration; else UTF-8."""
    for mark, encoding in _BOMS:
        if head.startswith(mark):
            return encoding
    declared = _DECLARED.match(head)
    name = declared.group(1).decode("ascii").lower() if declared else "utf-8"
    # A declaration in ASCII is not UTF-16, even if it says so: .NET writes such files.
    if name in ("utf-8", "utf8", "us-ascii", "ascii") or name.startswith(("utf-16", "utf-32")):
        return "utf-8"
    return name


def _build_decoder(encoding: str) -> codecs.IncrementalDecoder:
    try:
        b" ".decode(encoding, "ignore")  # refuses codecs that are not text encodings, such as zip
        return codecs.getincrementaldecoder(encoding)("ci_agent_eval.mark")
    except (LookupError, UnicodeError) as error:
        raise NotReadableError(f"its encoding {encoding!r} is not known") from error


_CHUNK_BYTES = 64 * 1024
_MAX_TOKEN_BYTES = 64 * 1024 * 1024
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


class StreamEnd(NamedTuple):
    """The end of parsing. Elements reported before a problem stay valid."""

    replaced: int = 0
    """Number of characters that were replaced to make the file readable."""
    problem: str | None = None
    """The reason that the document could not be read to its end."""
    line: int = 0
    """1-based line of the problem; 0 for none."""


def parse_xml_stream(raw: Readable, attach: Callable[[expat.XMLParserType], None]) -> StreamEnd:
    """Parse until the end or a problem. Raises only errors of `raw`.

    `attach` sets the handlers of the parser, which may raise NotReadableError.
    """
    parser = _build_safe_parser()
    attach(parser)
    reader = None
    try:
        reader = CleanReader(raw)
        _feed_parser(reader, parser)
    except expat.ExpatError as error:
        problem, line = _format_error(error), error.lineno
    except NotReadableError as error:
        problem, line = str(error), parser.CurrentLineNumber if reader else 0
    else:
        return StreamEnd(reader.replaced)
    return StreamEnd(reader.replaced if reader else 0, problem, line)


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
    parser.EntityDeclHandler = _refuse_entity
    return parser


def _refuse_entity(name: str, *_: object) -> None:
    """Refuse a declaration: entities can expand without end, or read other files."""
    raise NotReadableError(f"it declares the entity {name[:40]!r}; write it without one")
