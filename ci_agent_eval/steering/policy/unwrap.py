"""Unwrapping of a command to the command, script or code that it runs, one layer at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ci_agent_eval.steering.policy.argument_injection import (
    unwrap_fd,
    unwrap_find,
    unwrap_parallel,
    unwrap_xargs,
)
from ci_agent_eval.steering.policy.option_parser import (
    Layer,
    build_layers,
    parse_wrapper,
    select_module,
)
from ci_agent_eval.steering.policy.powershell_call import (
    unwrap_invoke_expression,
    unwrap_powershell,
    unwrap_start_process,
)
from ci_agent_eval.steering.policy.words import (
    PythonCode,
    ShellCommand,
    ShellScope,
    ShellScript,
    Word,
    get_program_name,
)
from ci_agent_eval.steering.policy.wrappers import WRAPPERS, Wrapper

_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "ksh", "ash", "fish", "rbash"})
_PYTHON = re.compile(r"^(python|pypy|ipython)[\d.]*w?$|^py(thonw)?$")
_CMD_OPTION = re.compile(r"^//?[ckr]", re.IGNORECASE)
"""MSYS needs two slashes and removes one."""
_SHELL_OPTIONS = Wrapper(
    frozenset({"-c", "-o", "-O", "+o", "+O", "--rcfile", "--init-file"}), script=frozenset({"-c"})
)
_PYTHON_OPTIONS = Wrapper(
    frozenset({"-c", "-m", "-W", "-X", "--check-hash-based-pycs"}),
    script=frozenset({"-c"}),
    module=frozenset({"-m"}),
)


def unwrap_command(command: ShellCommand, scope: ShellScope) -> list[Layer] | None:
    """Return the layers that a command runs; None if it is no wrapper, [] if it runs nothing."""
    if not command.words:
        return []
    name = get_program_name(command.words[0])
    unwrapper = _UNWRAPPERS.get(name)
    if unwrapper is not None:
        return unwrapper(command, scope)
    if _PYTHON.match(name) or _runs_module(command.words):
        return _unwrap_interpreter(command, scope)
    wrapper = WRAPPERS.get(name)
    if wrapper is None:
        return _unwrap_file(command, scope)
    parsed = parse_wrapper(wrapper, name, command.words[1:])
    return None if parsed is None else build_layers(parsed, command)


def _runs_module(words: Sequence[Word]) -> bool:
    """Return whether an unexpanded program is called like Python."""
    return not words[0].known and len(words) > 2 and words[1].text == "-m"


def _unwrap_shell(command: ShellCommand, scope: ShellScope) -> list[Layer]:
    parsed = parse_wrapper(_SHELL_OPTIONS, "", command.words[1:])
    if parsed is None:
        return []
    if parsed.script is not None:
        return build_layers(parsed, command)
    rest = parsed.rest[1:] if parsed.rest and parsed.rest[0].text == "-" else parsed.rest
    reads_stdin = any(word.text == "-s" for word in command.words[1:]) or not rest
    if not reads_stdin:
        return _unwrap_script(rest, command, scope, same_shell=False)
    if command.stdin is None:
        return []
    return [ShellScript(command.stdin, parameters=rest)]


def _unwrap_script(
    words: tuple[Word, ...], command: ShellCommand, scope: ShellScope, *, same_shell: bool
) -> list[Layer]:
    text = scope.get_file(words[0].text) if words else None
    if text is None and words and words[0].text == "/dev/stdin":
        text = command.stdin
    if text is None:
        return []
    return [ShellScript(text, parameters=words[1:], same_shell=same_shell)]


def _unwrap_file(command: ShellCommand, scope: ShellScope) -> list[Layer] | None:
    """Unwrap a file written by the same text, by its first line."""
    text = scope.get_file(command.words[0].text)
    if text is None:
        return None
    if text.startswith("#!") and "python" in text.partition("\n")[0]:
        return [PythonCode(text, command.words[1:])]
    return [ShellScript(text, parameters=command.words[1:], stdin=command.stdin)]


def _unwrap_source(command: ShellCommand, scope: ShellScope) -> list[Layer]:
    return _unwrap_script(command.words[1:], command, scope, same_shell=True)


def _unwrap_eval(command: ShellCommand, _: ShellScope) -> list[Layer]:
    text = " ".join(word.text for word in command.words[1:])
    return [ShellScript(text, same_shell=True, stdin=command.stdin)]


def _unwrap_trap(command: ShellCommand, _: ShellScope) -> list[Layer]:
    words = [word for word in command.words[1:] if word.text != "--"]
    return [ShellScript(words[0].text, same_shell=True)] if words else []


def _unwrap_builtin_command(command: ShellCommand, _: ShellScope) -> list[Layer]:
    words = command.words[1:]
    if words and re.match(r"^-\w*[vV]", words[0].text):
        return []
    rest = tuple(words[1:] if words and words[0].text in {"-p", "--"} else words)
    return [command.with_words(rest)]


def _unwrap_env(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap `env`; its `-S` splits a word into several."""
    words = command.words[1:]
    for at, word in enumerate(words):
        if not word.text.startswith("-"):
            break
        value = re.match(r"^(?:-\w*S|--split-string=?)(.*)$", word.text, re.DOTALL)
        if value:
            rest = words[at + 1 :]
            text = value[1] or (rest[0].text if rest else "")
            rest = rest if value[1] else rest[1:]
            return [ShellScript(" ".join((text, *(each.source_text for each in rest))))]
    parsed = parse_wrapper(WRAPPERS["env"], "env", words)
    return [] if parsed is None else build_layers(parsed, command)


def _unwrap_tmux(command: ShellCommand, _: ShellScope) -> list[Layer] | None:
    """Unwrap `tmux`; its `send-keys` types a text followed by names of keys."""
    parsed = parse_wrapper(WRAPPERS["tmux"], "tmux", command.words[1:])
    if parsed is None:
        return None
    keys = {"enter", "c-m", "kpenter"}
    parsed.rest = tuple(word for word in parsed.rest if word.text.casefold() not in keys)
    return build_layers(parsed, command) if parsed.rest else []


def _unwrap_interpreter(command: ShellCommand, scope: ShellScope) -> list[Layer]:
    parsed = parse_wrapper(_PYTHON_OPTIONS, "", command.words[1:])
    if parsed is None:
        return []
    if parsed.script is not None:
        return [PythonCode(parsed.script.text, parsed.rest)]
    if parsed.module is not None:
        return [command.with_words(select_module(parsed.module, parsed.rest))]
    if not parsed.rest or parsed.rest[0].text == "-":
        return [] if command.stdin is None else [PythonCode(command.stdin, parsed.rest[1:])]
    text = scope.get_file(parsed.rest[0].text)
    if text is not None:
        return [PythonCode(text, parsed.rest[1:])]
    return [command.with_words(parsed.rest)]


def _unwrap_hatch(command: ShellCommand, _: ShellScope) -> list[Layer] | None:
    """Unwrap `hatch`; its `run` may have an environment's name: `env:command`."""
    parsed = parse_wrapper(WRAPPERS["hatch"], "hatch", command.words[1:])
    if parsed is None:
        return None
    if parsed.rest and ":" in parsed.rest[0].text and not parsed.wrapper.runs:
        first = parsed.rest[0]
        parsed.rest = (Word(first.text.partition(":")[2], first.known), *parsed.rest[1:])
    return build_layers(parsed, command)


def _unwrap_cmd(command: ShellCommand, _: ShellScope) -> list[Layer]:
    words = command.words[1:]
    at = next((at for at, w in enumerate(words) if _CMD_OPTION.match(w.text)), -1)
    if at < 0:
        return []
    first = _CMD_OPTION.sub("", words[at].text)
    text = " ".join([*([first] if first else []), *(word.text for word in words[at + 1 :])])
    return [ShellScript(text, "cmd")]


def _unwrap_mise(command: ShellCommand, _: ShellScope) -> list[Layer] | None:
    """Unwrap `mise`; its `exec` has names of tools, then `--`, then the command."""
    texts = [word.text for word in command.words]
    if "--" in texts and {"exec", "x"} & set(texts[: texts.index("--")]):
        return [command.with_words(command.words[texts.index("--") + 1 :])]
    parsed = parse_wrapper(WRAPPERS["mise"], "mise", command.words[1:])
    return None if parsed is None else build_layers(parsed, command)


def _unwrap_watcher(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap a watcher of pytest; it runs nothing for `--help` or `--version`."""
    if any(word.text in {"--help", "-h", "--version"} for word in command.words[1:]):
        return []
    name = get_program_name(command.words[0])
    parsed = parse_wrapper(WRAPPERS[name], name, command.words[1:])
    return [] if parsed is None else build_layers(parsed, command)


_UNWRAPPERS: dict[str, Callable[[ShellCommand, ShellScope], list[Layer] | None]] = {
    **dict.fromkeys(_SHELLS, _unwrap_shell),
    ".": _unwrap_source,
    "cmd": _unwrap_cmd,
    "command": _unwrap_builtin_command,
    "env": _unwrap_env,
    "eval": _unwrap_eval,
    "fd": unwrap_fd,
    "fdfind": unwrap_fd,
    "find": unwrap_find,
    "hatch": _unwrap_hatch,
    "iex": unwrap_invoke_expression,
    "invoke-expression": unwrap_invoke_expression,
    "mise": _unwrap_mise,
    "parallel": unwrap_parallel,
    "powershell": unwrap_powershell,
    "ptw": _unwrap_watcher,
    "pwsh": unwrap_powershell,
    "pytest-watch": _unwrap_watcher,
    "saps": unwrap_start_process,
    "start-process": unwrap_start_process,
    "source": _unwrap_source,
    "tmux": _unwrap_tmux,
    "trap": _unwrap_trap,
    "xargs": unwrap_xargs,
}
