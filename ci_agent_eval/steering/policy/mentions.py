"""Whether a text mentions a test runner, or can hide the name of one.

The hook asks this for each command before it imports anything else, so this module imports only
what starting the program has imported.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_QUOTING = str.maketrans("", "", "'\"\\^`\r\n\0")
_NAMES = ("pytest", "py.test", "ptw", "hatch", "rye", "powershell", "pwsh")
"""Every text that runs pytest contains one of these, unless it joins them of parts.

The last two run encoded text, in which any name can be.
"""
_EXPANSION = re.compile(r"\$(?![?!#])|[{%`]|\\u")
"""Expansions, which can contain unwritten words; `$?`, `$!` and `$#` are numbers."""
_JOINERS = (("xargs",), ("cat", "|"), ("import", "py"))
"""Words of commands that join names of parts without an expansion."""


def may_run_tests(text: str, commands: Sequence[str] = ()) -> bool:
    """Return False if a text cannot run pytest or one of the commands, such as `make test`."""
    unquoted = remove_quoting(text)
    if _EXPANSION.search(text) or any(name in unquoted for name in _NAMES):
        return True
    named = (remove_quoting(each).removeprefix("./").split() for each in commands)
    return any(words and all(word in unquoted for word in words) for words in (*_JOINERS, *named))


def remove_quoting(text: str) -> str:
    """Return a text in lower case and without characters that quote or continue a line."""
    return text.translate(_QUOTING).casefold()
