"""The source text of an expression, on one line."""

from __future__ import annotations

import ast
import io
import re
import tokenize

_BREAK = "\0"
"""Placeholder for a line break of the layout; source text cannot contain it."""


class SourceText:
    """A module's text, by the lines and byte columns of its syntax tree."""

    def __init__(self, text: str) -> None:
        # Newlines are already normalized; a form feed does not end a line in Python.
        self._lines = [line.encode() for line in text.split("\n")]

    def get_text(self, node: ast.expr | ast.stmt) -> str:
        """Return the node's text without comments and line breaks."""
        assert node.end_lineno is not None  # noqa: S101 - parsed nodes have positions
        assert node.end_col_offset is not None  # noqa: S101 - as above
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        lines[-1] = lines[-1][: node.end_col_offset]
        lines[0] = lines[0][node.col_offset :]
        text = b"\n".join(lines).decode()
        return join_source_lines(text) if len(lines) > 1 else text


def join_source_lines(text: str) -> str:
    """Return an expression's text without comments, its line breaks as single spaces."""
    text = re.sub(r"[ \t]*\\\n[ \t]*", " ", text)
    marked = _mark_line_breaks(text)
    marked = re.sub(rf"([(\[{{.]?)\s*{_BREAK}[\s{_BREAK}]*([)\]}}.]?)", _replace_break, marked)
    # The remaining line breaks are in string literals.
    return re.sub(r"\s*\n\s*", " ", marked)


def _replace_break(found: re.Match[str]) -> str:
    before, after = found.groups()
    return f"{before}{'' if before or after else ' '}{after}"


def _mark_line_breaks(text: str) -> str:
    """Mark the line breaks between tokens, and remove the comments before them."""
    lines = text.split("\n")
    # In brackets, as in the source: line breaks do not end a statement there.
    tokens = tokenize.generate_tokens(io.StringIO(f"(\n{text}\n)").readline)
    for token in tokens:
        line, column = token.start[0] - 2, token.start[1]
        if token.type == tokenize.COMMENT:
            lines[line] = lines[line][:column]
        elif token.type == tokenize.NL and 0 <= line < len(lines) - 1:
            lines[line] += _BREAK
    return "\n".join(lines)
