"""Parsing with tree-sitter: text in, the root of its syntax tree out.

The scanner (tree-sitter-bash 0.25) passes characters to C's `isdigit`, which reads a table of
256 entries: larger characters read out of bounds, and some crash the process. So each byte of a
non-ASCII character is shown to it as two letters below 256.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from functools import cache
from importlib import import_module

from tree_sitter import Language, Node, Parser


@cache
def _load_language(module: str) -> Language:
    return Language(import_module(module).language())


_MAX_BYTES = 10_000
"""Maximum length of a source; error recovery takes quadratic time, here up to 0.25 s."""
_MAX_BYTES_WITH_ERRORS = 4_000
"""Maximum length of a source with syntax errors."""


def is_too_long(text: str) -> bool:
    """Return whether a text is too long to be parsed in any case."""
    return len(text) > _MAX_BYTES


def parse_tree(source: bytes, module: str) -> Node | None:
    """Parse source with a module's grammar; None if that would take too long.

    Creates a parser for each call, which costs microseconds: parsers have state that threads
    must not share.
    """
    parser = Parser(_load_language(module))
    if len(source) <= _MAX_BYTES_WITH_ERRORS:
        return parser.parse(source).root_node
    if len(source) > _MAX_BYTES:
        return None
    try:
        tree = parser.parse(
            lambda offset, _: source[offset : offset + 4096],
            progress_callback=lambda _, has_error: has_error,
        )
    except ValueError:  # tree-sitter's error for a cancelled parse
        return None
    return tree.root_node


_HEX = "0123456789abcdef"
_LETTERS = "".join(chr(0xC0 + digit) for digit in range(16))
"""`À` and the next characters are letters below 256."""
_TO_LETTERS, _TO_HEX = str.maketrans(_HEX, _LETTERS), str.maketrans(_LETTERS, _HEX)
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_ENCODED = re.compile(rf"(?:[{_LETTERS}]{{2}})+")


def encode_for_grammar(text: str) -> bytes:
    """Return UTF-8 with two letters for each byte of a non-ASCII character."""

    def encode(match: re.Match[str]) -> str:
        return match[0].encode("utf-8", "replace").hex().translate(_TO_LETTERS)

    return _NON_ASCII.sub(encode, text).encode()


def decode_from_grammar(source: bytes) -> str:
    """Return the original text of a part of encoded bytes."""

    def decode(match: re.Match[str]) -> str:
        return bytes.fromhex(match[0].translate(_TO_HEX)).decode("utf-8", "replace")

    return _ENCODED.sub(decode, source.decode("utf-8", "replace"))


_HEADER = re.compile(r"<<-?[ \t]*(?P<quote>['\"\\]?)(?P<end>\w+)")


def extract_heredocs(text: str) -> tuple[str, dict[str, str]]:
    """Replace each here-document without expansions with a short placeholder line.

    The grammar is slow with long ones, and ends some at a line that only begins like their end.
    Returns the text, and the here-documents by their placeholders.
    """
    if "<<" not in text:
        return text, {}
    lines = text.split("\n")
    lines_by_text = _index_lines(lines)
    plain_lines: list[str] = []
    documents: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        plain_lines.append(line)
        at += 1
        header = _HEADER.search(line)
        end = _find_next(lines_by_text.get(header["end"], []), at - 1) if header else None
        if header is None or end is None:
            continue
        body = "\n".join(lines[at:end])
        if at < end and (header["quote"] or not ("$(" in body or "`" in body)):
            key = f"document-{len(documents)}"
            documents[key] = f"{body}\n"
            plain_lines.append(key)
            at = end
    return "\n".join(plain_lines), documents


def _index_lines(lines: list[str]) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, line in enumerate(lines):
        numbers[line.strip("\t ")].append(number)
    return numbers


def _find_next(numbers: list[int], after: int) -> int | None:
    index = bisect_right(numbers, after)
    return numbers[index] if index < len(numbers) else None
