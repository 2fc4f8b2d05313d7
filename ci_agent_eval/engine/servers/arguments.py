"""The words of a model's `args`, split as a shell would; what only a shell could do is refused."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from ci_agent_eval.errors import InputError

_OPERATORS = {
    ";": "joins commands",
    "\n": "joins commands",
    "|": "is a pipe",
    "&": "joins commands or runs them in the background",
    ">": "is a redirection",
    "<": "is a redirection",
}
_EXPANSION = re.compile(r"`|\$(?:[A-Za-z_({]|[0-9?@*#!$-])")
"""What a shell replaces outside single quotes: `...`, $(...), ${...}, $name, $1."""


def split_arguments(text: str) -> list[str]:
    """Return the words of `text`.

    Raises InputError, in a sentence for the model, on unbalanced quotes and on anything a
    shell would act on: it stays without effect here, and must not pass for an argument.
    """
    if "\0" in text:
        raise InputError("args holds a NUL character, which no argument can.")
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"args cannot be split into arguments: {str(error).lower()}.") from error
    for found, why in _shell_syntax(text.strip()):
        raise InputError(
            f"{found!r} in args {why}, and there is no shell here: nothing was run. Call the tool "
            "once for each command; put quotes around text that is meant as it stands."
        )
    return words


def _shell_syntax(text: str) -> Iterator[tuple[str, str]]:
    """Yield what a shell would act on, with what it would do, by the quoting of POSIX shells."""
    quote = ""
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\" and quote != "'":
            if text.startswith("\n", position + 1):
                yield "\\\n", "continues a line"
            position += 2
            continue
        if character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        elif not quote and character in _OPERATORS:
            yield character, _OPERATORS[character]
        elif quote != "'" and (expansion := _EXPANSION.match(text, position)):
            yield expansion[0], "would be replaced by something else"
        position += 1
