"""Splitting of a model's `args` into words as in a shell; other shell syntax is refused."""

from __future__ import annotations

import re
import shlex

from ci_agent_eval.errors import InputError

MAX_CHARACTERS = 100_000
"""Linux refuses an argument of 128 KiB, and shlex takes quadratic time."""

_REASONS = {
    ";": "joins commands",
    "\n": "joins commands",
    "|": "is a pipe",
    "&": "joins commands or runs them in the background",
    ">": "is a redirection",
    "<": "is a redirection",
    "\\\n": "continues a line",
}
_EXPANSION = r"`|\$(?:[A-Za-z_({]|[0-9?@*#!$-])"
"""Expansions of a shell outside single quotes: `...`, $(...), ${...}, $name, $1."""

_PIECE = re.compile(rf"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.?|[;\n|&<>]|{_EXPANSION}""", re.DOTALL)
_QUOTED_PIECE = re.compile(rf"\\.|{_EXPANSION}", re.DOTALL)


def split_arguments(text: str) -> list[str]:
    """Split `text` into words.

    Raises InputError with a message for the model on unbalanced quotes and on shell syntax,
    which has no effect here and must not become an argument.
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"args has {len(text)} characters; at most {MAX_CHARACTERS} are taken.")
    if "\0" in text:
        raise InputError("args holds a NUL character, which no argument can.")
    try:
        return shlex.split(_PIECE.sub(_check_piece, text.strip("\n")))
    except ValueError as error:
        raise InputError(f"args cannot be split into arguments: {str(error).lower()}.") from error


def _check_piece(match: re.Match[str]) -> str:
    """Return a piece of the text for shlex. Raises InputError on shell syntax."""
    piece = match[0]
    if piece.startswith('"'):
        return f'"{_QUOTED_PIECE.sub(_check_quoted_piece, piece[1:-1])}"'
    if piece.startswith("'") or (piece.startswith("\\") and piece != "\\\n"):
        return piece
    raise _build_refusal(piece)


def _check_quoted_piece(match: re.Match[str]) -> str:
    """Return a piece inside double quotes, where shlex would keep a backslash before `$`."""
    piece = match[0]
    if piece in {r"\$", r"\`"}:
        return piece[1]
    if piece.startswith("\\") and piece != "\\\n":
        return piece
    raise _build_refusal(piece)


def _build_refusal(syntax: str) -> InputError:
    reason = _REASONS.get(syntax, "would be replaced by something else")
    return InputError(
        f"{syntax!r} in args {reason}, and there is no shell here: nothing was run. Call the tool "
        "once for each command; put single quotes around text that is meant as it stands."
    )
