"""What the words of a wrapper hold: its options, and the command, text or module it runs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.steering.policy.words import PythonCode, ShellCommand, ShellScript, Word
from ci_agent_eval.steering.policy.wrappers import WRAPPERS, Wrapper

Layer = ShellCommand | ShellScript | PythonCode
"""What a command runs in turn."""

_ASSIGNMENT = re.compile(r"^\w+=")


@dataclass(slots=True)
class ParsedWrapper:
    """What a wrapper's words held."""

    wrapper: Wrapper
    rest: tuple[Word, ...] = ()
    script: Word | None = None
    module: Word | None = None
    program: Word | None = None
    environment: tuple[tuple[str, Word], ...] = ()


def build_layers(taken: ParsedWrapper, command: ShellCommand) -> list[Layer]:
    """Return what the command with these words runs."""
    environment = (*command.environment, *taken.environment)
    if taken.script is not None:
        return [ShellScript(taken.script.text, parameters=taken.rest[1:], stdin=command.stdin)]
    rest = taken.rest
    if taken.module is not None:
        rest = (taken.module, *rest)
    if taken.program is not None:
        rest = (taken.program, *rest)
    if taken.wrapper.runs:
        rest = (Word(taken.wrapper.runs), *_drop_dashes(rest))
    if taken.wrapper.joined:
        text = " ".join(word.text for word in rest) or command.stdin or ""
        return [ShellScript(text, stdin=command.stdin)]
    return [replace(command, words=rest, environment=environment)] if rest else []


def _drop_dashes(words: tuple[Word, ...]) -> tuple[Word, ...]:
    return words[1:] if words and words[0].text == "--" else words


def parse_wrapper(wrapper: Wrapper, key: str, words: tuple[Word, ...]) -> ParsedWrapper | None:
    """Go through a wrapper's options; None if its subcommand runs nothing."""
    taken = ParsedWrapper(wrapper)
    at, skipped, options = 0, 0, True
    while at < len(words):
        word, at = words[at], at + 1
        text = word.text
        if options and text == "--":
            options = False
        elif options and len(text) > 1 and text[0] in "-+":
            if text in wrapper.start:
                taken.rest = words[at:]
                return taken
            at = _parse_option(taken, words, at)
            if taken.script is not None or taken.module is not None:
                break
        elif wrapper.group:
            key = f"{key} {text}"
            found = WRAPPERS.get(key)
            if found is None:
                return None
            taken.wrapper = wrapper = found
        elif wrapper.assignments and _ASSIGNMENT.match(text):
            name, _, value = text.partition("=")
            taken.environment = (*taken.environment, (name, Word(value, word.known)))
        elif skipped < wrapper.skip:
            skipped += 1
        else:
            at -= 1
            break
    taken.rest = words[at:]
    return None if wrapper.group else taken


def _parse_option(taken: ParsedWrapper, words: Sequence[Word], at: int) -> int:
    """Read the option that ends before `at`; return where the next word starts."""
    word, wrapper = words[at - 1], taken.wrapper
    name, equals, value = word.text.partition("=")
    found: Word | None = Word(value, word.known) if equals else None
    if name not in wrapper.valued and not name.startswith("--"):
        name, found = _parse_short_options(word, wrapper)
    if name not in wrapper.valued:
        return at
    if found is None:
        found = words[at] if at < len(words) else Word("")
        at += 1
    if name in wrapper.script:
        taken.script = found
    elif name in wrapper.module:
        taken.module = found
    elif name in wrapper.program:
        taken.program = found
    return at


def _parse_short_options(word: Word, wrapper: Wrapper) -> tuple[str, Word | None]:
    """Find the option with a value in short options written as one word, such as `-lc`."""
    for index, letter in enumerate(word.text[1:], 2):
        if f"-{letter}" in wrapper.valued:
            rest = word.text[index:]
            return f"-{letter}", Word(rest, word.known) if rest else None
    return word.text, None
