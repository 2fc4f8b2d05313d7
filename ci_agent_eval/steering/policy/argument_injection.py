"""Programs that give another one words: `xargs`, GNU parallel, `find -exec`, `fd -x`."""

from __future__ import annotations

import re

from ci_agent_eval.steering.policy.option_parser import Layer, parse_wrapper
from ci_agent_eval.steering.policy.words import (
    ShellCommand,
    ShellScope,
    ShellScript,
    Word,
    make_words,
)
from ci_agent_eval.steering.policy.wrappers import WRAPPERS, Wrapper

FROM_STDIN = Word("{…}", known=False)
"""Words that only arrive when the command runs."""


def unwrap_xargs(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Read `xargs`, which adds the words of its input."""
    taken = parse_wrapper(WRAPPERS["xargs"], "xargs", command.words[1:])
    if taken is None or not taken.rest:
        return []
    arrived = (FROM_STDIN,) if command.stdin is None else make_words(*command.stdin.split())
    mark = _find_placeholder(command.words[1 : len(command.words) - len(taken.rest)])
    if mark is None:
        return [ShellCommand((*taken.rest, *arrived), command.environment)]
    words = (each for word in taken.rest for each in _replace_placeholder(word, mark, arrived))
    return [ShellCommand(tuple(words), command.environment)]


def _find_placeholder(options: tuple[Word, ...]) -> str | None:
    """Return the text that `xargs` replaces; None if it adds words at the end."""
    mark = None
    for at, word in enumerate(options):
        found = re.match(r"^(?:-\w*?[IJ](.*)|-\w*?i(.*)|--replace(?:=(.*))?)$", word.text)
        if found and found[1] is not None:
            mark = found[1] or (options[at + 1].text if at + 1 < len(options) else None)
        elif found:
            mark = found[2] or found[3] or "{}"
    return mark


def _replace_placeholder(word: Word, mark: str, arrived: tuple[Word, ...]) -> tuple[Word, ...]:
    if mark not in word.text:
        return (word,)
    return tuple(
        Word(word.text.replace(mark, each.text), word.known and each.known) for each in arrived
    )


def unwrap_parallel(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Read GNU parallel, which adds the words behind `:::` or of its input."""
    words = command.words[1:]
    separator = next((at for at, word in enumerate(words) if word.text.startswith(":::")), None)
    arrived = words[separator + 1 :] if separator is not None else (FROM_STDIN,)
    taken = parse_wrapper(
        Wrapper(frozenset({"-j", "--jobs", "-a", "-n", "-N"})), "", words[:separator]
    )
    if taken is None:
        return []
    if separator is not None and not taken.rest:
        return [ShellScript(word.text) for word in arrived]
    text = " ".join(word.text for word in taken.rest)
    shown = " ".join(word.shown for word in arrived)
    return [ShellScript(text.replace("{}", shown) if "{}" in text else f"{text} {shown}")]


def unwrap_find(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Read `find`, whose `-exec` runs a command with `{}` for what was found."""
    layers: list[Layer] = []
    words = command.words[1:]
    starts = [at for at, w in enumerate(words) if w.text in {"-exec", "-execdir", "-ok", "-okdir"}]
    for start in starts:
        part = words[start + 1 :]
        end = next((at for at, word in enumerate(part) if word.text in {";", "+"}), len(part))
        layers.append(command.running(_mark_placeholders(part[:end])))
    return layers


def _mark_placeholders(words: tuple[Word, ...]) -> tuple[Word, ...]:
    return tuple(Word(word.text, known=False) if "{}" in word.text else word for word in words)


def unwrap_fd(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Read `fd`, whose `-x` runs a command with what was found behind it."""
    words = command.words[1:]
    flags = {"-x", "--exec", "-X", "--exec-batch"}
    start = next((at for at, word in enumerate(words) if word.text in flags), None)
    return (
        []
        if start is None
        else [command.running((*_mark_placeholders(words[start + 1 :]), FROM_STDIN))]
    )
