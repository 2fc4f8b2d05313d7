from __future__ import annotations

import io
from xml.etree import ElementTree as ET

from hypothesis import example, given
from hypothesis import strategies as st

from ci_agent_eval.results.junit.sanitize import (
    CleanReader,
    NotReadableError,
    StreamEnd,
    parse_xml_stream,
)
from tests.tables import each_row

FORBIDDEN = ["\x00", "\x01", "\x08", "\x0b", "\x0c", "\x1b", "\x1f", "\ufffe", "\uffff"]
REFERENCES = ["&#x1b;", "&#27;", "&#0;", "&#x0;", "&#xD800;", "&#xFFFE;", "&#65535;", "&#x110000;"]


class Chunked:
    """A file that gives at most `step` bytes at a time, as pipes do."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file = io.BytesIO(data)
        self._step = step

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, self._step))


def cleaned(data: bytes, step: int = 1 << 20) -> tuple[bytes, int]:
    reader = CleanReader(Chunked(data, step))
    pieces = []
    while piece := reader.read(step):
        pieces.append(piece)
    return b"".join(pieces), reader.replaced


@each_row("bad", FORBIDDEN)
def test_forbidden_characters_are_replaced_and_counted(bad: str) -> None:
    text, replaced = cleaned(f"<a>x{bad}y{bad}</a>".encode())
    assert ET.fromstring(text).text == "x\ufffdy\ufffd"
    assert replaced == 2


@each_row("bad", REFERENCES)
def test_forbidden_references_are_replaced_and_counted(bad: str) -> None:
    text, replaced = cleaned(f'<a b="{bad}">x{bad}y</a>'.encode())
    element = ET.fromstring(text)
    assert (element.text, element.get("b"), replaced) == ("x\ufffdy", "\ufffd", 2)


@each_row(
    "fine", ["&#65;", "&#x41;", "&#10;", "&#xD7FF;", "&#x1F600;", "&amp;#27;", "\t\n", "é", "😀"]
)
def test_allowed_text_passes_unchanged(fine: str) -> None:
    data = f"<a>{fine}</a>".encode()
    assert cleaned(data) == (data, 0)


@each_row(
    ("data", "replaced"),
    [
        (b"<a>\xff</a>", 1),
        (b"<a>\xed\xa0\x80</a>", 3),  # a lone surrogate as bytes
        (b"<a>\xc3</a>", 1),
        (b"<a>\xef\xbf\xbd</a>", 0),  # U+FFFD itself is allowed
    ],
)
def test_bytes_that_are_no_utf8_are_replaced(data: bytes, replaced: int) -> None:
    text, count = cleaned(data)
    assert set(ET.fromstring(text).text or "") == {"\ufffd"}
    assert count == replaced


@each_row(
    ("declared", "codec"),
    [
        ("utf-8", "utf-8"),
        ("utf-8", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-16", "utf-16-be"),
        ("utf-16", "utf-16-le"),
        ("utf-16", "utf-8"),  # .NET declares UTF-16 and writes UTF-8
        ("utf-32", "utf-32"),
        ("ISO-8859-1", "latin-1"),
        ("windows-1252", "cp1252"),
        ("iso-8859-15", "iso-8859-15"),
    ],
)
def test_encodings_are_read_as_they_are(declared: str, codec: str) -> None:
    document = f'<?xml version="1.0" encoding="{declared}"?><a>déjà</a>'
    assert heard(document.encode(codec)) == (["a", "déjà"], StreamEnd())


@each_row("name", ["klingon", "zip", "rot13", "undefined"])
def test_an_unknown_encoding_is_named(name: str) -> None:
    _, end = heard(f'<?xml version="1.0" encoding="{name}"?><a/>'.encode())
    assert name in (end.problem or "")


def heard(data: bytes, step: int = 1 << 20) -> tuple[list[str], StreamEnd]:
    """What expat hears of a document."""
    texts: list[str] = []

    class Listener:
        def attach(self, parser) -> None:
            parser.StartElementHandler = lambda tag, _: texts.append(tag)
            parser.CharacterDataHandler = texts.append

    end = parse_xml_stream(Chunked(data, step), Listener().attach)
    return texts, end


fragments = st.sampled_from(
    [b"&#", b"&#x", b"&", b"27", b"1b", b";", b"\x1b", b"\xff", b"\xc3", b"\xa9", b"<a>", b"</a>",
     b"\xed\xa0\x80", b"\xef\xbf", b"\xbe", b"plain text", b"\x00", "😀".encode(), b"<?xml "]
)  # fmt: skip
hostile = st.one_of(st.binary(max_size=200), st.lists(fragments, max_size=40).map(b"".join))


@given(hostile, st.integers(1, 7))
@example(b"<a>&#00000000000000000000000000000000000000027;</a>", 3)
@example(b"x" * 1030 + b"&#27;", 5)
def test_any_chunking_gives_the_same_bytes(data: bytes, step: int) -> None:
    # The head is sniffed as a whole, so it must be long enough for later chunks to matter.
    for document in (data, b"<a>" + b" " * 1030 + data):
        try:
            whole = cleaned(document)
        except NotReadableError:
            continue
        assert cleaned(document, step) == whole


@given(hostile)
def test_no_byte_breaks_the_text_of_an_element(data: bytes) -> None:
    escaped = data.replace(b"<", b"").replace(b"]]>", b"").replace(b"&", b"&amp;")
    _, end = heard(b"<a>" + escaped + b"</a>")
    assert end.problem is None
