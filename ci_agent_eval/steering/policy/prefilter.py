"""Fast filters for texts that cannot run tests or be dangerous, which nearly all are.

The hook applies them to each command before it imports anything else, so this module imports
only what starting the program has imported.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_DEPTH = 12
"""Maximum nesting depth of objects, lists and JSON strings in a call's arguments."""

_QUOTING = str.maketrans("", "", "'\"\\^`\r\n")
_EXPANSION = re.compile(r"\$(?![?!#])|[{%]|powershell|pwsh", re.IGNORECASE)
"""Expansions and encoded commands, which can contain unwritten words.

`$?`, `$!` and `$#` are numbers.
"""
_NAMES = ("pytest", "py.test", "ptw", "hatch", "rye")
"""Every text that runs pytest without an expansion contains one of these."""
_DANGEROUS_PROGRAMS = (
    r"(?i)\b(?:rm|rd|rmdir|del|ri|remove-item|git|dd|mkfs|wipefs|shred|fdisk|sfdisk|parted|format"
    r"|clear-disk)"
)


def may_run_tests(text: str, commands: Sequence[str] = ()) -> bool:
    """Return False if a text cannot run pytest or one of the commands, such as `make test`."""
    text = text.replace("\0", "")
    unquoted = remove_quoting(text)
    return (
        any(name in unquoted for name in _NAMES)
        or _EXPANSION.search(text) is not None
        or any(_contains_command(unquoted, command) for command in commands)
    )


def _contains_command(unquoted: str, command: str) -> bool:
    words = remove_quoting(command).split()
    return bool(words) and all(word in unquoted for word in words)


def remove_quoting(text: str) -> str:
    """Return a text in lower case and without characters that quote or continue a line."""
    return text.translate(_QUOTING).casefold()


def may_be_dangerous(text: str) -> bool:
    """Return False if a text contains no program of the sets of dangerous commands."""
    return re.search(_DANGEROUS_PROGRAMS, text) is not None


def parse_json_text(text: str) -> object | None:
    """Parse a JSON object, list or string; None for other texts."""
    if text.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None


def iterate_texts(value: object, depth: int = 0) -> Iterator[str]:
    """Yield all texts in any arguments of a tool, those inside JSON texts included."""
    if isinstance(value, str):
        parsed = parse_json_text(value) if depth <= MAX_DEPTH else None
        if parsed is None:
            yield value
        else:
            yield from iterate_texts(parsed, depth + 1)
    elif isinstance(value, dict):
        for each in value.values():
            yield from iterate_texts(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from iterate_texts(each, depth + 1)
