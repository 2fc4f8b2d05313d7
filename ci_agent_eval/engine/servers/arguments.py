"""Splitting of a model's `args` into words as in a shell; other shell syntax is refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from ci_agent_eval.errors import InputError

MAX_CHARACTERS = 100_000
"""Linux refuses an argument of 128 KiB, and shlex takes quadratic time."""

_OPERATORS = {
    ";": "joins commands",
    "\n": "joins commands",
    "|": "is a pipe",
    "&": "joins commands or runs them in the background",
    ">": "is a redirection",
    "<": "is a redirection",
}
_EXPANSION = re.compile(r"`|\$(?:[A-Za-z_({]|[0-9?@*#!$-])")
"""Expansions of a shell outside single quotes: `...`, $(...), ${...}, $name, $1."""


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
        return shlex.split("".join(_iterate_pieces(text.strip("\n"))))
    except ValueError as error:
        raise InputError(f"args cannot be split into arguments: {str(error).lower()}.") from error


def _iterate_pieces(text: str) -> Iterator[str]:
    """Yield `text` in pieces. Raises InputError on shell syntax.

    A backslash before `$` or a backquote inside double quotes is dropped, because shlex would
    keep it.
    """
    quote = ""
    position = 0
    while position < len(text):
        piece = text[position]
        if piece == "\\" and quote != "'":
            piece = text[position : position + 2]
            if piece == "\\\n":
                raise _build_refusal(piece, "continues a line")
            yield piece[1:] if quote and piece[1:] in {"$", "`"} else piece
        else:
            _refuse_shell_syntax(text, position, quote)
            yield piece
            quote = _get_next_quote(piece, quote)
        position += len(piece)


def _refuse_shell_syntax(text: str, position: int, quote: str) -> None:
    character = text[position]
    if not quote and character in _OPERATORS:
        raise _build_refusal(character, _OPERATORS[character])
    if quote != "'" and (expansion := _EXPANSION.match(text, position)):
        raise _build_refusal(expansion[0], "would be replaced by something else")


def _get_next_quote(character: str, quote: str) -> str:
    if quote:
        return "" if character == quote else quote
    return character if character in {"'", '"'} else ""


def _build_refusal(syntax: str, reason: str) -> InputError:
    return InputError(
        f"{syntax!r} in args {reason}, and there is no shell here: nothing was run. Call the tool "
        "once for each command; put single quotes around text that is meant as it stands."
    )
