"""Text helpers: counts with nouns, single lines, truncation, columns of a terminal."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence

_VARYING = re.compile(
    r"0x[0-9A-Fa-f]+"  # addresses
    r"|\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"
    r"|\b[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\b"  # UUIDs
    r"|\b(?:req|call|chatcmpl|msg|resp|run|thread|asst|toolu|fc|file|batch|gen|evt)[_-]\w{6,}"
    r"|\b(?=[0-9A-Fa-f]*[0-9])[0-9A-Fa-f]{8,}\b"  # hashes
    r"|\b(?=[A-Za-z]*\d)(?=[a-z0-9]*[A-Z])(?=[A-Z0-9]*[a-z])[A-Za-z0-9]{16,}\b"  # mixed tokens
    r"|(?:/private)?/(?:tmp|var/tmp|var/folders)/(?:[\w.~-]+/)*"  # temporary folders
    r"|\b[A-Za-z]:\\(?:[\w.~ -]+\\)*Temp\\(?:[\w.~-]+\\)*"
    r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"  # times
    r"|\b\d+:\d\d(?::\d\d)?\b"
    r"|\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds?|min|minutes?|h|hours?)\b"
    r"|(?<![\w.'\"])\d+(?:[.,]\d+)*(?![\w'\"])",  # numbers, but not in names of the code
    re.ASCII,
)
# The runner reads `::command::` at the start of a line, blanks trimmed, and `##[command]`
# anywhere in it (ActionCommand.cs). pytest wraps some texts, so that any word may start a line.
_COMMAND_START = re.compile(r"(?<!\S):(?=:[a-zA-Z])")
_OLD_COMMAND = re.compile(r"##(?=\[)")

# The colours that pytest gives to the explanation of an assertion; no blinking, reversed or
# concealed text, and no background.
_COLOR_CODE = "(?:0?[134]|00?|3[0-79]|49|9[0-7])?"
_COLOR = re.compile(rf"(\x1b\[{_COLOR_CODE}(?:;{_COLOR_CODE})*m)")
_BLANKS = "\t\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u202f\u205f\u3000"
"""Blanks that Python does not count as printable."""
_JOINERS = "\u00ad\u200c\u200d"
"""Soft hyphen, and the marks inside words of some scripts and inside emoji."""
_MAX_COMPARED = 300
_EXPLANATION = "assert "
"""Start of pytest's explanation, which follows the assert's own message, if it has one."""
_PLACE = re.compile(r" \(([^()\s]+):(\d+)\)$", re.ASCII)
"""The place of an exception, at the end of an episode's reason."""


def pluralize(
    number: int, noun: str, plural: str | None = None, *, figure: str | None = None
) -> str:
    """Return a count with its noun: `1 call`, `2 calls`.

    `plural` is the irregular plural of the noun, `figure` the formatted number.
    """
    return f"{figure or number} {noun if number == 1 else plural or noun + 's'}"


def format_cost(dollars: float) -> str:
    """Write US dollars with four decimals; of a smaller amount the first two digits."""
    if dollars == 0:
        return "$0.00"
    places = max(4, 1 - math.floor(math.log10(dollars)))
    return f"${dollars:.{places}f}"


def format_column(value: bool | float | str) -> str:
    """Format the value of a plugin's column."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def one_line(text: str) -> str:
    """Collapse each run of whitespace to one space."""
    return " ".join(text.split())


def shorten_text(text: str, limit: int) -> str:
    """Return a text on one line, truncated to `limit` characters with an ellipsis."""
    line = one_line(text)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def make_printable(text: str) -> str:
    """Return a line that controls neither the terminal nor the runner of GitHub Actions."""
    return without_commands("".join(map(_show_character, text)))


def make_lines_printable(text: str, *, has_colors: bool) -> str:
    """Return lines that control neither the terminal nor the runner, with pytest's colours if any.

    A text of an agent may then contain the same colours.
    """
    text = text.replace("\r\n", "\n")
    # The odd parts are the colours.
    parts = _COLOR.split(text) if has_colors else [text]
    parts[::2] = ["\n".join(map(make_printable, part.split("\n"))) for part in parts[::2]]
    return "".join(parts)


def _show_character(character: str) -> str:
    is_shown = character.isprintable() or character in _BLANKS or character in _JOINERS
    return character if is_shown else "\N{REPLACEMENT CHARACTER}"


def without_commands(text: str) -> str:
    """Break up workflow commands, so that the runner of GitHub Actions ignores them."""
    return _OLD_COMMAND.sub("## ", _COMMAND_START.sub(": ", text))


def replace_varying_parts(text: str) -> str:
    """Return the first line with the parts that differ from run to run as `#`, to group causes.

    These are ids, addresses, temporary folders, times and numbers. Names of the code stay.
    """
    first = text.strip().partition("\n")[0][:_MAX_COMPARED]
    return _VARYING.sub("#", first).strip()


def summarize_reason(reason: str) -> str:
    """Return a failed assertion's reason on one line: its first line.

    An assert's own message would hide the values, so pytest's explanation follows it in brackets.
    """
    first, *more = reason.strip().split("\n")
    explanation = next((line for line in more if line.startswith(_EXPLANATION)), "")
    has_message = explanation and not first.startswith(_EXPLANATION)
    return f"{first} ({explanation})" if has_message else first


def split_place(reason: str) -> tuple[str, str | None, int | None]:
    """Split the place off the first line of an episode's reason: text, file and line.

    File and line are None if the reason ends with no place.
    """
    first = reason.strip().partition("\n")[0]
    found = _PLACE.search(first)
    if found is None:
        return first, None, None
    return first[: found.start()], found[1], int(found[2])


def list_cases(cases: Sequence[str], most: int = 3) -> str:
    """Return the first cases as a text, and how many there are more."""
    more = f" and {len(cases) - most} more" if len(cases) > most else ""
    return ", ".join(cases[:most]) + more


_CHUNKS = re.compile(r"[ \t\n\v\f\r]+|[^ \t\n\v\f\r]+")
_WITHOUT_COLUMN = frozenset({"Mn", "Me", "Cf"})


def count_columns(text: str) -> int:
    """Return the number of columns that a line takes."""
    return len(text) if text.isascii() else sum(map(_get_columns, text))


def _get_columns(character: str) -> int:
    if unicodedata.category(character) in _WITHOUT_COLUMN:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap_columns(text: str, width: int, indent: str = "") -> list[str]:
    """Return the text in lines of at most `width` columns, at least one line.

    `indent` is put before all lines but the first. Blanks at the start of the text stay, those at
    the end of a line are left out. A word that is longer than a line is broken.
    """
    lines: list[str] = []
    line, used, start = "", 0, count_columns(indent)
    for chunk in _list_chunks(text, width - start):
        size = count_columns(chunk)
        if used + size > width:
            lines.append(line.rstrip())
            line, used = indent, start
        if used > start or not lines or not chunk.isspace():
            line, used = line + chunk, used + size
    return [*lines, line.rstrip()]


def _list_chunks(text: str, most: int) -> Iterator[str]:
    """Yield words and blanks, and the characters of words of more than `most` columns."""
    for chunk in _CHUNKS.findall(text.expandtabs().rstrip()):
        if chunk.isspace():
            yield " " * len(chunk)
        elif count_columns(chunk) <= most:
            yield chunk
        else:
            yield from chunk


_DIGITS = re.compile(r"([0-9]+)")


def build_natural_key(name: str) -> list[tuple[int, str]]:
    """Return the sort key of natural order: `run-9` before `run-10`, of any length."""
    parts = (part.lstrip("0") if at % 2 else part for at, part in enumerate(_DIGITS.split(name)))
    return [(len(part) if at % 2 else -1, part) for at, part in enumerate(parts)]
