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

COMPOSED_KEYS = frozenset({"args", "executable", "program"})
"""Arguments that are parts of a command."""

_QUOTING = str.maketrans("", "", "'\"\\^`\r\n")
_NAMES = ("pytest", "py.test", "ptw", "hatch", "rye", "powershell", "pwsh")
"""Every text that runs pytest contains one of these, unless it joins them of parts.

The last two run encoded text, in which any name can be.
"""
_EXPANSION = re.compile(r"\$(?![?!#])|[{%`]")
"""Expansions, which can contain unwritten words; `$?`, `$!` and `$#` are numbers."""
_JOINERS = ("cat", "import", "xargs")
"""Programs that join parts without an expansion; Python's code, which imports, joins literals."""
_JOINED_NAMES = ("pytest", "ptw", "hatch", "rye", "powershell", "pwsh", "xargs")
"""Names that must not result from expansions. `xargs -I` cuts words anywhere."""
_XARGS = re.compile(r"\bxargs(?=(?:\s+-(?:[0rt]+|[nlp]\s*\d+|i\s*(?:\{\}|[%@])))*\s+[\"']?[a-z/.])")
"""`xargs` in lower case that cuts no words, up to the first letter of its command."""
_LETTER_CODE = re.compile(r"\\[0-7xuUN]")
"""An escape that writes a letter as a number or by its name, once quotes are removed."""
_FINAL_BACKSLASH = re.compile(r"\\[\"'\\\s,{}$%]")
"""A backslash that may end a value, and then begin an escape with the next one."""
_CODE = re.compile(r"(?<!>&)(?<![-$\w])(?:[xuU]?\d(?!>)|[xuU]\b)")
"""What may follow such a backslash; no option and no number of a stream (`2>&1`)."""
_OTHER_LETTER = re.compile(r"[^\W\x00-\x7f]")
"""A letter that Python or a change of case may turn into another one."""
_DANGEROUS_PROGRAMS = (
    r"(?i)\b(?:rm|rd|rmdir|del|ri|remove-item|dd|mkfs|wipefs|shred|fdisk|sfdisk|parted|format"
    r"|clear-disk)"
)
_DANGEROUS_OF_GIT = tuple(
    f"git {name}" for name in ("checkout", "clean", "push", "reset", "restore", "stash")
)


def may_run_tests(text: str, commands: Sequence[str] = ()) -> bool:
    """Return False if a text cannot run pytest or one of the commands, such as `make test`."""
    text = text.replace("\0", "")
    unquoted = remove_quoting(text)
    if any(name in unquoted for name in _NAMES) or any(
        all(word in unquoted for word in words) for words in _split_commands(commands)
    ):
        return True
    has_joiner = _EXPANSION.search(text) or any(name in unquoted for name in _JOINERS)
    return bool(has_joiner) and _may_join(text, unquoted, commands)


def _split_commands(commands: Sequence[str]) -> Iterator[list[str]]:
    return filter(None, (remove_quoting(each).removeprefix("./").split() for each in commands))


def _may_join(text: str, unquoted: str, commands: Sequence[str]) -> bool:
    r"""Return False if no parts of a text can be joined to a name or command.

    Expansions move and join parts of the text. They cut it at other characters than letters,
    behind the letters of an option (`-cpytest`), and behind the letter of an escape (`\n`). So
    an unwritten name consists of runs of letters, of which only the first may begin inside one. It
    does not begin behind a dot: `a.py` is the end of a file's name.
    """
    if (
        _OTHER_LETTER.search(text)
        or _LETTER_CODE.search(text.replace("'", "").replace('"', ""))
        or (_FINAL_BACKSLASH.search(text) and _CODE.search(text))
    ):
        return True
    lowered = _XARGS.sub("", text.lower())
    starts = re.sub(r"\.[a-z]+|[^a-z.]+|\.", " ", f"{lowered} ")
    runs = re.sub(r"[^a-z]+", " ", f" {lowered} ")
    if "\\" in text or "`" in text:
        runs += re.sub(r" [a-z]", " ", runs)

    def is_joined(name: str) -> bool:
        ends = [at for at in range(1, len(name) + 1) if f"{name[:at]} " in starts]
        for start in ends:
            ends += [
                at
                for at in range(start + 1, len(name) + 1)
                if at not in ends and f" {name[start:at]} " in runs
            ]
        return len(name) in ends

    return any(map(is_joined, _JOINED_NAMES)) or any(
        all(
            word in unquoted or all(map(is_joined, re.findall(r"(?<![.a-z])[a-z]+", word)))
            for word in words
        )
        for words in _split_commands(commands)
    )


def remove_quoting(text: str) -> str:
    """Return a text in lower case and without characters that quote or continue a line."""
    return text.translate(_QUOTING).casefold()


def may_be_dangerous(text: str) -> bool:
    """Return False if a text contains no command of the sets of dangerous commands."""
    is_written = re.search(_DANGEROUS_PROGRAMS, text) is not None
    return is_written or may_run_tests(text, _DANGEROUS_OF_GIT)


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
    """Yield all texts in any arguments of a tool, those inside JSON texts included.

    The texts of one command are one text: a script gets the words after it.
    """
    if isinstance(value, str):
        parsed = parse_json_text(value) if depth <= MAX_DEPTH else None
        if parsed is None:
            yield value
        else:
            yield from iterate_texts(parsed, depth + 1)
    elif isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        texts = [text for part in parts for text in iterate_texts(part, depth + 1)]
        is_one = isinstance(value, list) or not COMPOSED_KEYS.isdisjoint(map(str.lower, value))
        yield from ["\n".join(texts)] if is_one else texts
