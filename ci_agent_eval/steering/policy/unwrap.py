"""From a command to the command, text or code that it runs: one layer at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ci_agent_eval.steering.policy.argument_injection import of_fd, of_find, of_parallel, of_xargs
from ci_agent_eval.steering.policy.option_parser import Layer, layers_of, take
from ci_agent_eval.steering.policy.powershell_call import invoked, started, text_of
from ci_agent_eval.steering.policy.words import Code, Command, Scope, Text, Word, program_of
from ci_agent_eval.steering.policy.wrappers import WRAPPERS, Wrapper

_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "rbash"})
_PYTHON = re.compile(r"^(python|pypy|ipython)[\d.]*w?$|^py(thonw)?$")
_CMD = re.compile(r"^//?[ckr]", re.IGNORECASE)
"""MSYS wants two slashes, of which it takes one away."""
_SHELL_OPTIONS = Wrapper(
    frozenset({"-c", "-o", "-O", "+o", "+O", "--rcfile", "--init-file"}), script=frozenset({"-c"})
)
_PYTHON_OPTIONS = Wrapper(
    frozenset({"-c", "-m", "-W", "-X", "--check-hash-based-pycs"}),
    script=frozenset({"-c"}),
    module=frozenset({"-m"}),
)


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
    taken = take(wrapper, name, command.words[1:])
    return None if taken is None else layers_of(taken, command)


def _runs_module(words: Sequence[Word]) -> bool:
    """Say whether it is a program that only the shell knows, called as Python is."""
    return not words[0].known and len(words) > 2 and words[1].text == "-m"


def _shell(command: Command, scope: Scope) -> list[Layer]:
    taken = take(_SHELL_OPTIONS, "", command.words[1:])
    if taken is None:
        return []
    if taken.script is not None:
        return layers_of(taken, command)
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
    taken = take(WRAPPERS["env"], "env", words)
    return [] if taken is None else layers_of(taken, command)


def _tmux(command: Command, _: Scope) -> list[Layer] | None:
    """Read `tmux`, whose `send-keys` types a text with names of keys behind it."""
    taken = take(WRAPPERS["tmux"], "tmux", command.words[1:])
    if taken is None:
        return None
    keys = {"enter", "c-m", "kpenter"}
    taken.rest = tuple(word for word in taken.rest if word.text.casefold() not in keys)
    return layers_of(taken, command) if taken.rest else []


def _python(command: Command, scope: Scope) -> list[Layer]:
    taken = take(_PYTHON_OPTIONS, "", command.words[1:])
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
    taken = take(WRAPPERS["hatch"], "hatch", command.words[1:])
    if taken is None:
        return None
    if taken.rest and ":" in taken.rest[0].text and not taken.wrapper.runs:
        first = taken.rest[0]
        taken.rest = (Word(first.text.partition(":")[2], first.known), *taken.rest[1:])
    return layers_of(taken, command)


def _cmd(command: Command, _: Scope) -> list[Layer]:
    words = command.words[1:]
    at = next((at for at, w in enumerate(words) if _CMD.match(w.text)), -1)
    if at < 0:
        return []
    first = _CMD.sub("", words[at].text)
    text = " ".join([*([first] if first else []), *(word.text for word in words[at + 1 :])])
    return [Text(text, "cmd")]


def _mise(command: Command, _: Scope) -> list[Layer] | None:
    """Read `mise`, whose `exec` names tools, then `--`, then the command."""
    texts = [word.text for word in command.words]
    if "--" in texts and {"exec", "x"} & set(texts[: texts.index("--")]):
        return [command.running(command.words[texts.index("--") + 1 :])]
    taken = take(WRAPPERS["mise"], "mise", command.words[1:])
    return None if taken is None else layers_of(taken, command)


def _watch(command: Command, _: Scope) -> list[Layer]:
    """Read a watcher of pytest, which may only be asked about itself."""
    if any(word.text in {"--help", "-h", "--version"} for word in command.words[1:]):
        return []
    name = program_of(command.words[0])
    taken = take(WRAPPERS[name], name, command.words[1:])
    return [] if taken is None else layers_of(taken, command)


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
    "fd": of_fd,
    "fdfind": of_fd,
    "find": of_find,
    "hatch": _hatch,
    "iex": _invoked,
    "invoke-expression": _invoked,
    "mise": _mise,
    "parallel": of_parallel,
    "powershell": _powershell,
    "ptw": _watch,
    "pwsh": _powershell,
    "pytest-watch": _watch,
    "saps": _started,
    "start-process": _started,
    "source": _source,
    "tmux": _tmux,
    "trap": _trap,
    "xargs": of_xargs,
}
