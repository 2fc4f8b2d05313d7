"""Programs that run other programs, and the parser of their options.

The table in `tables/wrappers.txt` lists the options with a value, so that the first remaining word
is the command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ci_agent_eval.steering.policy.model import Arity
from ci_agent_eval.steering.policy.options import take_option
from ci_agent_eval.steering.policy.words import (
    PythonCode,
    ShellCommand,
    ShellScript,
    Word,
    get_program_name,
)
from ci_agent_eval.steering.tables import read_table

Layer = ShellCommand | ShellScript | PythonCode
"""A command, shell script or Python code that a command runs."""

_ASSIGNMENT = re.compile(r"^\w+=")
_PYTEST = frozenset({"pytest", "py.test"})
_WITHOUT_SECOND_MODULE = _PYTEST | {"mypy"}
"""Modules whose `-m` names a mark, or a module that they only read."""


@dataclass(frozen=True, slots=True)
class Wrapper:
    """The command-line syntax of one program, or of one of its subcommands; see the table."""

    kinds: Mapping[str, str]
    """The options in the table with what they have as value: `script`, `module`, `program`, or
    any `value`; `start` options are followed by the command."""
    arities: Mapping[str, Arity]
    skip: int
    runs: str
    flags: frozenset[str]
    """`assignments`, `joined` and `group`."""


def _parse_wrapper_row(text: str) -> Wrapper:
    valued, _, more = text.partition("|")
    kinds = dict.fromkeys(valued.split(), "value")
    values: dict[str, str] = {}
    for key, equals, value in (word.partition("=") for word in more.split()):
        if key in {"script", "module", "program", "start"}:
            kinds |= dict.fromkeys(value.split(","), key)
        else:
            values[key] = value if equals else "yes"
    return Wrapper(
        kinds=kinds,
        arities={name: "1" for name, kind in kinds.items() if kind != "start"},
        skip=int(values.pop("skip", "0")),
        runs=values.pop("runs", ""),
        flags=frozenset(values),
    )


def _load_wrappers() -> Iterator[tuple[str, Wrapper]]:
    wrappers: dict[str, Wrapper] = {}
    for line in read_table("wrappers.txt"):
        names, colon, text = line.partition(":")
        if colon:
            wrappers |= dict.fromkeys(names.split(", "), _parse_wrapper_row(text))
            continue
        new, _, old = line.partition(" = ")
        yield from (
            (new + name.removeprefix(old), wrapper)
            for name, wrapper in wrappers.items()
            if f"{name} ".startswith(f"{old} ")
        )
    yield from wrappers.items()


WRAPPERS = dict(_load_wrappers())
"""The programs and their subcommands, such as `docker run`."""


@dataclass(slots=True)
class ParsedWrapper:
    """The parsed arguments of a wrapper."""

    wrapper: Wrapper
    rest: tuple[Word, ...] = ()
    values: dict[str, Word] = field(default_factory=dict)
    """The values of options by their kinds."""
    environment: tuple[tuple[str, Word], ...] = ()


def build_layers(parsed: ParsedWrapper, command: ShellCommand) -> list[Layer]:
    """Return the layers that a command with these parsed arguments runs."""
    environment = (*command.environment, *parsed.environment)
    if "script" in parsed.values:
        text = parsed.values["script"].text
        return [ShellScript(text, parameters=parsed.rest[1:], stdin=command.stdin)]
    words = parsed.rest
    if "module" in parsed.values:
        words = select_module(parsed.values["module"], words)
    if "program" in parsed.values:
        words = (parsed.values["program"], *words)
    if parsed.wrapper.runs:
        words = (Word(parsed.wrapper.runs), *_drop_dashes(words))
    if "joined" in parsed.wrapper.flags:
        text = " ".join(word.text for word in words) or command.stdin or ""
        return [ShellScript(text, stdin=command.stdin)]
    return [replace(command, words=words, environment=environment)] if words else []


def select_module(module: Word, arguments: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of the module that Python runs.

    A module without a table entry that gets options and then `-m pytest` runs pytest, such as
    `cudf.pandas -m pytest`.
    """
    is_known = module.text in _WITHOUT_SECOND_MODULE or get_program_name(module) in WRAPPERS
    if not is_known and arguments and arguments[0].text.startswith("-"):
        for at, (option, value) in enumerate(pairwise(arguments)):
            if option.text in {"-m", "--module"} and value.text in _PYTEST:
                return arguments[at + 1 :]
    return (module, *arguments)


def _drop_dashes(words: tuple[Word, ...]) -> tuple[Word, ...]:
    return words[1:] if words and words[0].text == "--" else words


def parse_wrapper(name: str, words: tuple[Word, ...]) -> ParsedWrapper | None:
    """Parse the arguments of a program in the table; None if its subcommand runs nothing."""
    key, wrapper = name, WRAPPERS[name]
    parsed = ParsedWrapper(wrapper)
    at, skipped, reads_options = 0, 0, True
    while at < len(words):
        word, at = words[at], at + 1
        text = word.text
        if reads_options and text == "--":
            reads_options = False
        elif reads_options and len(text) > 1 and text[0] in "-+":
            if wrapper.kinds.get(text) == "start":
                break
            options, at = take_option(words, at - 1, wrapper.arities)
            parsed.values |= {
                wrapper.kinds.get(option, "flag"): value or Word("") for option, value in options
            }
            if {"script", "module"} & parsed.values.keys():
                break
        elif "group" in wrapper.flags:
            key = f"{key} {text}"
            if key not in WRAPPERS:
                return None
            parsed.wrapper = wrapper = WRAPPERS[key]
        elif "assignments" in wrapper.flags and _ASSIGNMENT.match(text):
            variable, _, content = text.partition("=")
            parsed.environment = (*parsed.environment, (variable, Word(content, word.known)))
        elif skipped < wrapper.skip:
            skipped += 1
            # Options after a container's image are the program's.
            reads_options = reads_options and "program" not in parsed.values
        else:
            at -= 1
            break
    parsed.rest = words[at:]
    return None if "group" in wrapper.flags else parsed
