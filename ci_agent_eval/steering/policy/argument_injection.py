"""Programs that pass arguments to another command: `xargs`, GNU parallel, `find -exec`, `fd -x`."""

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
"""Words that are unknown until the command runs."""
_PARALLEL = Wrapper(frozenset({"-j", "--jobs", "-a", "-n", "-N"}))


def unwrap_xargs(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap `xargs`, which adds the words of its input."""
    parsed = parse_wrapper(WRAPPERS["xargs"], "xargs", command.words[1:])
    if parsed is None or not parsed.rest:
        return []
    added = (FROM_STDIN,) if command.stdin is None else make_words(*command.stdin.split())
    placeholder = _find_placeholder(command.words[1 : len(command.words) - len(parsed.rest)])
    if placeholder is None:
        return [ShellCommand((*parsed.rest, *added), command.environment)]
    words = (
        each for word in parsed.rest for each in _replace_placeholder(word, placeholder, added)
    )
    return [ShellCommand(tuple(words), command.environment)]


def _find_placeholder(options: tuple[Word, ...]) -> str | None:
    """Return the placeholder that `xargs` replaces; None if it appends words."""
    placeholder = None
    for at, word in enumerate(options):
        found = re.match(r"^(?:-\w*?[IJ](.*)|-\w*?i(.*)|--replace(?:=(.*))?)$", word.text)
        if found and found[1] is not None:
            placeholder = found[1] or (options[at + 1].text if at + 1 < len(options) else None)
        elif found:
            placeholder = found[2] or found[3] or "{}"
    return placeholder


def _replace_placeholder(word: Word, placeholder: str, added: tuple[Word, ...]) -> tuple[Word, ...]:
    if placeholder not in word.text:
        return (word,)
    return tuple(
        Word(word.text.replace(placeholder, each.text), word.known and each.known) for each in added
    )


def unwrap_parallel(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap GNU parallel, which adds the words after `:::` or of its input."""
    words = command.words[1:]
    separator = next((at for at, word in enumerate(words) if word.text.startswith(":::")), None)
    added = words[separator + 1 :] if separator is not None else (FROM_STDIN,)
    parsed = parse_wrapper(_PARALLEL, "", words[:separator])
    if parsed is None:
        return []
    if separator is not None and not parsed.rest:
        return [ShellScript(word.text) for word in added]
    text = " ".join(word.text for word in parsed.rest)
    added_text = " ".join(word.source_text for word in added)
    return [ShellScript(text.replace("{}", added_text) if "{}" in text else f"{text} {added_text}")]


def unwrap_find(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap `find`: `-exec` runs a command with `{}` for each path."""
    layers: list[Layer] = []
    words = command.words[1:]
    starts = [at for at, w in enumerate(words) if w.text in {"-exec", "-execdir", "-ok", "-okdir"}]
    for start in starts:
        part = words[start + 1 :]
        end = next((at for at, word in enumerate(part) if word.text in {";", "+"}), len(part))
        layers.append(command.with_words(_mark_placeholders(part[:end])))
    return layers


def _mark_placeholders(words: tuple[Word, ...]) -> tuple[Word, ...]:
    return tuple(Word(word.text, known=False) if "{}" in word.text else word for word in words)


def unwrap_fd(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap `fd`: `-x` runs a command with each path appended."""
    words = command.words[1:]
    flags = {"-x", "--exec", "-X", "--exec-batch"}
    start = next((at for at, word in enumerate(words) if word.text in flags), None)
    return (
        []
        if start is None
        else [command.with_words((*_mark_placeholders(words[start + 1 :]), FROM_STDIN))]
    )
