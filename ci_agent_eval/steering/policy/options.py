"""Parsing of options in a command's words, in the ways of the programs that read them. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ci_agent_eval.steering.policy.model import Arity, OptionStyle
from ci_agent_eval.steering.policy.words import Word

Option = tuple[str, Word | None]
"""An option's name with its first value."""

_LOOKS_LIKE_PATH = re.compile(r"[/\\]|::|\.(?:py|ipynb|md|rst|txt|ya?ml)$|^tests?$|^\.+$")


def take_option(
    words: Sequence[Word], at: int, arities: Mapping[str, Arity], style: OptionStyle = "posix"
) -> tuple[list[Option], int]:
    """Parse the word at an index; return the options in it and the index after their values."""
    word = words[at]
    name, equals, value = word.text.partition("=")
    if style == "go":
        name = f"-{name.lstrip('-')}"
    if name not in arities and not name.startswith("--") and style != "go":
        return _take_cluster(words, at, arities, style)
    if equals:
        return [(name, Word(value, word.known))], at + 1
    return _take_values(name, words, at + 1, arities, style)


def _take_cluster(
    words: Sequence[Word], at: int, arities: Mapping[str, Arity], style: OptionStyle
) -> tuple[list[Option], int]:
    """Parse clustered short options, such as `-xvk name` and `-n4`."""
    word = words[at]
    options: list[Option] = []
    for index, letter in enumerate(word.text[1:2] if style == "java" else word.text[1:], 2):
        name, attached = f"-{letter}", word.text[index:]
        if arities.get(name, "0") == "0":
            options.append((name, None))
        elif attached:
            options.append((name, Word(attached.removeprefix("="), word.known)))
            break
        else:
            last, end = _take_values(name, words, at + 1, arities, style)
            return [*options, *last], end
    return options, at + 1


def _take_values(
    name: str, words: Sequence[Word], at: int, arities: Mapping[str, Arity], style: OptionStyle
) -> tuple[list[Option], int]:
    is_argparse = style == "argparse"
    arity = arities.get(name)
    limit = {"0": 0, "1": 1, "2": 2, "?": 1, "+": len(words), None: int(is_argparse)}[arity]
    stops_at_options = is_argparse or arity == "?"
    end = at
    while end < len(words) and end - at < limit:
        is_target = arity is None and not _is_foreign_value(words[end])
        if is_target or (stops_at_options and is_option(words[end])):
            break
        end += 1
    return [(name, words[at] if end > at else None)], end


def is_option(word: Word) -> bool:
    """Return whether a word is an option."""
    return word.text.startswith("-") and len(word.text) > 1


def _is_foreign_value(word: Word) -> bool:
    """Return whether a word after an unknown option is its value and no target."""
    return word.known and not _LOOKS_LIKE_PATH.search(word.text)
