"""From a command to the command, text or code that it runs: one layer at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ci_agent_eval.steering.powershell_call import invoked, started, text_of
from ci_agent_eval.steering.words import Code, Command, Scope, Text, Word, known, program_of
from ci_agent_eval.steering.wrappers import WRAPPERS, Wrapper

Layer = Command | Text | Code

_ASSIGNMENT = re.compile(r"^\w+=")
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "busybox", "rbash"})
_PYTHON = re.compile(r"^(python|pypy|ipython)[\d.]*w?$|^py(thonw)?$")
_SHELL_OPTIONS = Wrapper(
    frozenset({"-c", "-o", "-O", "+o", "+O", "--rcfile", "--init-file"}), script=frozenset({"-c"})
)
_PYTHON_OPTIONS = Wrapper(
    frozenset({"-c", "-m", "-W", "-X", "--check-hash-based-pycs"}),
    script=frozenset({"-c"}),
    module=frozenset({"-m"}),
)
FROM_STDIN = Word("{…}", known=False)
"""Words that only arrive when the command runs."""


def unwrap(command: Command, scope: Scope) -> list[Layer] | None:
    """Return what a command runs in turn; None if it is no wrapper, [] if it runs nothing."""
    if not command.words:
        return []
    name = program_of(command.words[0])
    special = _SPECIAL.get(name)
    if special is not None:
        return special(command, scope)
    if _PYTHON.match(name) or _runs_module(command.words):
        return _python(command, scope)
    wrapper = WRAPPERS.get(name)
    if wrapper is None:
        return _file(command, scope)
    taken = _take(wrapper, name, command.words[1:])
    return None if taken is None else _layers(taken, command)


def _runs_module(words: Sequence[Word]) -> bool:
    """Say whether it is a program that only the shell knows, called as Python is."""
    return not words[0].known and len(words) > 2 and words[1].text == "-m"


@dataclass(slots=True)
class _Taken:
    """What a wrapper's words held."""

    wrapper: Wrapper
    rest: tuple[Word, ...] = ()
    script: Word | None = None
    module: Word | None = None
    program: Word | None = None
    environment: tuple[tuple[str, Word], ...] = ()


def _layers(taken: _Taken, command: Command) -> list[Layer]:
    environment = (*command.environment, *taken.environment)
    if taken.script is not None:
        return [Text(taken.script.text, parameters=taken.rest[1:], stdin=command.stdin)]
    rest = taken.rest
    if taken.module is not None:
        rest = (taken.module, *rest)
    if taken.program is not None:
        rest = (taken.program, *rest)
    if taken.wrapper.runs:
        rest = (Word(taken.wrapper.runs), *_after_dashes(rest))
    if taken.wrapper.joined:
        text = " ".join(word.text for word in rest) or command.stdin or ""
        return [Text(text, stdin=command.stdin)]
    return [replace(command, words=rest, environment=environment)] if rest else []


def _after_dashes(words: tuple[Word, ...]) -> tuple[Word, ...]:
    return words[1:] if words and words[0].text == "--" else words


def _take(wrapper: Wrapper, key: str, words: tuple[Word, ...]) -> _Taken | None:
    """Go through a wrapper's options; None if its subcommand runs nothing."""
    taken = _Taken(wrapper)
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
            at = _option(taken, words, at)
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


def _option(taken: _Taken, words: Sequence[Word], at: int) -> int:
    """Read the option that ends before `at`; return where the next word starts."""
    word, wrapper = words[at - 1], taken.wrapper
    name, equals, value = word.text.partition("=")
    found: Word | None = Word(value, word.known) if equals else None
    if name not in wrapper.valued and not name.startswith("--"):
        name, found = _short(word, wrapper)
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


def _short(word: Word, wrapper: Wrapper) -> tuple[str, Word | None]:
    """Find the option with a value in short options written as one word, such as `-lc`."""
    for index, letter in enumerate(word.text[1:], 2):
        if f"-{letter}" in wrapper.valued:
            rest = word.text[index:]
            return f"-{letter}", Word(rest, word.known) if rest else None
    return word.text, None


def _shell(command: Command, scope: Scope) -> list[Layer]:
    taken = _take(_SHELL_OPTIONS, "", command.words[1:])
    if taken is None:
        return []
    if taken.script is not None:
        return _layers(taken, command)
    rest = taken.rest[1:] if taken.rest and taken.rest[0].text == "-" else taken.rest
    reads_stdin = any(word.text == "-s" for word in command.words[1:]) or not rest
    if not reads_stdin:
        return _script(rest, command, scope, same_shell=False)
    if command.stdin is None:
        return []
    return [Text(command.stdin, parameters=rest)]


def _script(
    words: tuple[Word, ...], command: Command, scope: Scope, *, same_shell: bool
) -> list[Layer]:
    text = scope.written(words[0].text) if words else None
    if text is None and words and words[0].text == "/dev/stdin":
        text = command.stdin
    if text is None:
        return []
    return [Text(text, parameters=words[1:], same_shell=same_shell)]


def _file(command: Command, scope: Scope) -> list[Layer] | None:
    """Run a file that the same text wrote, by its first line."""
    text = scope.written(command.words[0].text)
    if text is None:
        return None
    if text.startswith("#!") and "python" in text.partition("\n")[0]:
        return [Code(text, command.words[1:])]
    return [Text(text, parameters=command.words[1:], stdin=command.stdin)]


def _source(command: Command, scope: Scope) -> list[Layer]:
    return _script(command.words[1:], command, scope, same_shell=True)


def _eval(command: Command, _: Scope) -> list[Layer]:
    text = " ".join(word.text for word in command.words[1:])
    return [Text(text, same_shell=True, stdin=command.stdin)]


def _trap(command: Command, _: Scope) -> list[Layer]:
    words = [word for word in command.words[1:] if word.text != "--"]
    return [Text(words[0].text, same_shell=True)] if words else []


def _command(command: Command, _: Scope) -> list[Layer]:
    words = command.words[1:]
    if words and re.match(r"^-\w*[vV]", words[0].text):
        return []
    rest = tuple(words[1:] if words and words[0].text in {"-p", "--"} else words)
    return [command.running(rest)]


def _env(command: Command, _: Scope) -> list[Layer]:
    """Read `env`, whose `-S` splits a word into several."""
    words = command.words[1:]
    for at, word in enumerate(words):
        if not word.text.startswith("-"):
            break
        value = re.match(r"^(?:-\w*S|--split-string=?)(.*)$", word.text, re.DOTALL)
        if value:
            rest = words[at + 1 :]
            text = value[1] or (rest[0].text if rest else "")
            rest = rest if value[1] else rest[1:]
            return [Text(" ".join((text, *(each.shown for each in rest))))]
    taken = _take(WRAPPERS["env"], "env", words)
    return [] if taken is None else _layers(taken, command)


def _xargs(command: Command, _: Scope) -> list[Layer]:
    """Read `xargs`, which adds the words of its input."""
    taken = _take(WRAPPERS["xargs"], "xargs", command.words[1:])
    if taken is None or not taken.rest:
        return []
    arrived = (FROM_STDIN,) if command.stdin is None else known(*command.stdin.split())
    replaced = tuple(
        each for word in taken.rest for each in (arrived if word.text in {"{}", "%"} else (word,))
    )
    words = replaced if replaced != taken.rest else (*taken.rest, *arrived)
    return [Command(words, command.environment)]


def _parallel(command: Command, _: Scope) -> list[Layer]:
    """Read GNU parallel, which adds the words behind `:::` or of its input."""
    words = command.words[1:]
    separator = next((at for at, word in enumerate(words) if word.text.startswith(":::")), None)
    arrived = words[separator + 1 :] if separator is not None else (FROM_STDIN,)
    taken = _take(Wrapper(frozenset({"-j", "--jobs", "-a", "-n", "-N"})), "", words[:separator])
    if taken is None:
        return []
    if separator is not None and not taken.rest:
        return [Text(word.text) for word in arrived]
    text = " ".join(word.text for word in taken.rest)
    shown = " ".join(word.shown for word in arrived)
    return [Text(text.replace("{}", shown) if "{}" in text else f"{text} {shown}")]


def _find(command: Command, _: Scope) -> list[Layer]:
    """Read `find`, whose `-exec` runs a command with `{}` for what was found."""
    layers: list[Layer] = []
    words = command.words[1:]
    starts = [at for at, w in enumerate(words) if w.text in {"-exec", "-execdir", "-ok", "-okdir"}]
    for start in starts:
        part = words[start + 1 :]
        end = next((at for at, word in enumerate(part) if word.text in {";", "+"}), len(part))
        layers.append(command.running(_filled(part[:end])))
    return layers


def _filled(words: tuple[Word, ...]) -> tuple[Word, ...]:
    return tuple(Word(word.text, known=False) if "{}" in word.text else word for word in words)


def _tmux(command: Command, _: Scope) -> list[Layer] | None:
    """Read `tmux`, whose `send-keys` types a text with names of keys behind it."""
    taken = _take(WRAPPERS["tmux"], "tmux", command.words[1:])
    if taken is None:
        return None
    keys = {"enter", "c-m", "kpenter"}
    taken.rest = tuple(word for word in taken.rest if word.text.casefold() not in keys)
    return _layers(taken, command) if taken.rest else []


def _fd(command: Command, _: Scope) -> list[Layer]:
    words = command.words[1:]
    flags = {"-x", "--exec", "-X", "--exec-batch"}
    start = next((at for at, word in enumerate(words) if word.text in flags), None)
    return [] if start is None else [command.running((*_filled(words[start + 1 :]), FROM_STDIN))]


def _python(command: Command, scope: Scope) -> list[Layer]:
    taken = _take(_PYTHON_OPTIONS, "", command.words[1:])
    if taken is None:
        return []
    if taken.script is not None:
        return [Code(taken.script.text, taken.rest)]
    if taken.module is not None:
        return [command.running((taken.module, *taken.rest))]
    if not taken.rest or taken.rest[0].text == "-":
        return [] if command.stdin is None else [Code(command.stdin, taken.rest[1:])]
    text = scope.written(taken.rest[0].text)
    if text is not None:
        return [Code(text, taken.rest[1:])]
    return [command.running(taken.rest)]


def _hatch(command: Command, _: Scope) -> list[Layer] | None:
    """Read `hatch`, whose `run` may name an environment before the command: `env:command`."""
    taken = _take(WRAPPERS["hatch"], "hatch", command.words[1:])
    if taken is None:
        return None
    if taken.rest and ":" in taken.rest[0].text and not taken.wrapper.runs:
        first = taken.rest[0]
        taken.rest = (Word(first.text.partition(":")[2], first.known), *taken.rest[1:])
    return _layers(taken, command)


def _cmd(command: Command, _: Scope) -> list[Layer]:
    words = command.words[1:]
    at = next((at for at, w in enumerate(words) if w.text[:2].casefold() in {"/c", "/k", "/r"}), -1)
    if at < 0:
        return []
    first = words[at].text[2:]
    text = " ".join([*([first] if first else []), *(word.text for word in words[at + 1 :])])
    return [Text(text, "cmd")]


def _powershell(command: Command, _: Scope) -> list[Layer]:
    return [*text_of(command)]


def _invoked(command: Command, _: Scope) -> list[Layer]:
    return [*invoked(command)]


def _started(command: Command, _: Scope) -> list[Layer]:
    return [*started(command)]


_SPECIAL: dict[str, Callable[[Command, Scope], list[Layer] | None]] = {
    **dict.fromkeys(_SHELLS, _shell),
    ".": _source,
    "cmd": _cmd,
    "command": _command,
    "env": _env,
    "eval": _eval,
    "fd": _fd,
    "fdfind": _fd,
    "find": _find,
    "hatch": _hatch,
    "iex": _invoked,
    "invoke-expression": _invoked,
    "parallel": _parallel,
    "powershell": _powershell,
    "pwsh": _powershell,
    "saps": _started,
    "start-process": _started,
    "source": _source,
    "tmux": _tmux,
    "trap": _trap,
    "xargs": _xargs,
}
