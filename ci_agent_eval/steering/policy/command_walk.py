"""One walk over all commands that a text would start, directly or through other programs. Pure."""

from __future__ import annotations

import base64
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ci_agent_eval.steering.policy.model import Shell
from ci_agent_eval.steering.policy.words import (
    PythonCode,
    ShellCommand,
    ShellScope,
    ShellScript,
    Word,
    get_program_name,
    make_words,
)
from ci_agent_eval.steering.policy.wrappers import (
    WRAPPERS,
    Layer,
    build_layers,
    parse_wrapper,
    select_module,
)
from ci_agent_eval.steering.shells import get_command_parser

_MAX_LAYERS = 40
"""Maximum number of nested wrappers."""
_CD_COMMANDS = frozenset({"cd", "pushd", "chdir", "set-location", "sl", "push-location"})

Answer = TypeVar("Answer")
Judge = Callable[[ShellCommand, ShellScope, ShellCommand], Answer | None]
"""Judges a command in its scope; the last parameter is the outermost wrapper around it.

None: the walk goes on to the command inside of this one.
"""


def judge_commands(
    layers: Iterable[Layer], scope: ShellScope, judge: Judge[Answer], depth: int = _MAX_LAYERS
) -> Iterator[Answer]:
    """Yield the answers of `judge` in the order in which the commands start."""
    for layer in layers if depth else ():
        if isinstance(layer, ShellCommand):
            yield from _judge_command(layer, scope, judge, depth)
        elif not scope.limits.spend(layer.text):
            continue
        elif isinstance(layer, PythonCode):
            from ci_agent_eval.steering.policy.python_code import unwrap_python  # noqa: PLC0415 - seldom

            yield from judge_commands(unwrap_python(layer), scope, judge, depth - 1)
        else:
            inner = scope if layer.same_shell else scope.create_child(layer)
            commands = get_command_parser(layer.shell)(layer.text, inner)
            yield from judge_commands(commands, inner, judge, depth - 1)


def _judge_command(
    command: ShellCommand, scope: ShellScope, judge: Judge[Answer], depth: int
) -> Iterator[Answer]:
    name = command.words[0].text if command.words else ""
    alias = scope.aliases.get(name)
    if alias is not None and scope.limits.spend(alias):
        arguments = " ".join(word.source_text for word in command.words[1:])
        script = ShellScript(f"{alias} {arguments}", same_shell=True, stdin=command.stdin)
        # The alias itself is not expanded in its own text.
        del scope.aliases[name]
        yield from judge_commands([script], scope, judge, depth - 1)
        scope.aliases.setdefault(name, alias)
        return
    outermost = command
    for _ in range(_MAX_LAYERS):
        answer = judge(command, scope, outermost) if command.words else None
        if answer is not None:
            yield answer
            return
        layers = unwrap_command(command, scope)
        if layers is None:
            _update_scope(command, scope)
            return
        if len(layers) != 1 or not isinstance(layers[0], ShellCommand):
            yield from judge_commands(layers, scope, judge, depth - 1)
            return
        command = layers[0]


def _update_scope(command: ShellCommand, scope: ShellScope) -> None:
    """Apply a command that changes the scope of later commands."""
    name = get_program_name(command.words[0])
    if name in _CD_COMMANDS:
        _change_directory(command, scope)
    elif name == "popd":
        scope.directory = None
    elif name in {"alias", "set-alias", "new-alias"}:
        _define_alias(command, scope)
    elif name == "set" and "--" in [word.text for word in command.words]:
        start = [word.text for word in command.words].index("--")
        scope.parameters = command.words[start + 1 :]


def _define_alias(command: ShellCommand, scope: ShellScope) -> None:
    words = [word for word in command.words[1:] if not word.text.startswith("-")]
    if "=" not in "".join(word.text for word in words) and len(words) == 2:
        scope.aliases[words[0].text] = words[1].text
    for word in words:
        name, equals, text = word.text.partition("=")
        if equals and word.known:
            scope.aliases[name] = text


def _change_directory(command: ShellCommand, scope: ShellScope) -> None:
    targets = [word for word in command.words[1:] if not word.text.startswith(("-", "/d"))]
    if not targets or not targets[-1].known or scope.directory is None:
        scope.directory = None
        return
    target = targets[-1].text.replace("\\", "/")
    scope.directory = posixpath.normpath(posixpath.join(scope.directory, target))


FROM_STDIN = Word("{…}", known=False)
"""Words that are unknown until the command runs."""
_PYTHON = re.compile(r"^(python|pypy|ipython)[\d.]*w?$|^py(thonw)?$")
_CMD_OPTION = re.compile(r"^//?[ckr]", re.IGNORECASE)
"""MSYS needs two slashes and removes one."""
_ENTER = frozenset({"enter", "c-m", "kpenter"})
"""Names of keys that `tmux send-keys` types after a text."""
_POWERSHELL_VALUED = (
    "configurationname", "custompipename", "executionpolicy", "ep", "ex", "inputformat",
    "outputformat", "of", "if", "psconsolefile", "settingsfile", "version", "windowstyle",
    "w", "workingdirectory", "wd",
)  # fmt: skip
_TEXT_OPTIONS = frozenset({"--", "-command"})
_START_PROCESS_FLAGS = frozenset({"-filepath", "-path", "-wait", "-nonewwindow", "-passthru"})


def unwrap_command(command: ShellCommand, scope: ShellScope) -> list[Layer] | None:
    """Return the layers that a command runs; None if it is no wrapper, [] if it runs nothing."""
    if not command.words:
        return []
    name = get_program_name(command.words[0])
    if name in _UNWRAPPERS:
        return _UNWRAPPERS[name](command, scope)
    is_called_like_python = not command.words[0].known and len(command.words) > 2
    if _PYTHON.match(name) or (is_called_like_python and command.words[1].text == "-m"):
        return _unwrap_python(command, scope)
    return _unwrap_listed(command) if name in WRAPPERS else _unwrap_file(command, scope)


def _unwrap_listed(command: ShellCommand) -> list[Layer] | None:
    parsed = parse_wrapper(get_program_name(command.words[0]), command.words[1:])
    return None if parsed is None else build_layers(parsed, command)


def _unwrap_file(command: ShellCommand, scope: ShellScope) -> list[Layer] | None:
    """Unwrap a file written by the same text, by its first line."""
    text = scope.get_file(command.words[0].text)
    if text is None:
        return None
    if text.startswith("#!") and "python" in text.partition("\n")[0]:
        return [PythonCode(text, command.words[1:])]
    return [ShellScript(text, parameters=command.words[1:], stdin=command.stdin)]


def _unwrap_shell(command: ShellCommand, scope: ShellScope) -> list[Layer] | None:
    parsed = parse_wrapper("bash", command.words[1:])
    if parsed is None:
        return None
    if "script" in parsed.values:
        return build_layers(parsed, command)
    arguments = parsed.rest[1:] if parsed.rest and parsed.rest[0].text == "-" else parsed.rest
    if arguments and not any(word.text == "-s" for word in command.words[1:]):
        return _unwrap_script(arguments, command, scope, same_shell=False)
    return [] if command.stdin is None else [ShellScript(command.stdin, parameters=arguments)]


def _unwrap_script(
    words: tuple[Word, ...], command: ShellCommand, scope: ShellScope, *, same_shell: bool
) -> list[Layer]:
    text = scope.get_file(words[0].text) if words else None
    if text is None and words and words[0].text == "/dev/stdin":
        text = command.stdin
    if text is None:
        return []
    return [ShellScript(text, parameters=words[1:], same_shell=same_shell)]


def _unwrap_source(command: ShellCommand, scope: ShellScope) -> list[Layer]:
    return _unwrap_script(command.words[1:], command, scope, same_shell=True)


def _unwrap_text(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap a command with a text for the same shell: `eval`, `trap` or `Invoke-Expression`."""
    name = get_program_name(command.words[0])
    words = [word.text for word in command.words[1:] if word.text.casefold() not in _TEXT_OPTIONS]
    text = " ".join(words[:1] if name == "trap" else words) or command.stdin or ""
    shell: Shell = "bash" if name in {"eval", "trap"} else "powershell"
    return [ShellScript(text, shell, same_shell=True, stdin=command.stdin)]


def _unwrap_builtin_command(command: ShellCommand, _: ShellScope) -> list[Layer]:
    words = command.words[1:]
    if words and re.match(r"^-\w*[vV]", words[0].text):
        return []
    return [command.with_words(words[1:] if words and words[0].text in {"-p", "--"} else words)]


def _unwrap_env(command: ShellCommand, _: ShellScope) -> list[Layer] | None:
    """Unwrap `env`; its `-S` splits a word into several."""
    words = command.words[1:]
    for at, word in enumerate(words):
        if not word.text.startswith("-"):
            break
        value = re.match(r"^(?:-\w*S|--split-string=?)(.*)$", word.text, re.DOTALL)
        if value:
            first = [value[1]] if value[1] else [each.text for each in words[at + 1 : at + 2]]
            following = words[at + 1 if value[1] else at + 2 :]
            return [ShellScript(" ".join((*first, *(each.source_text for each in following))))]
    return _unwrap_listed(command)


def _unwrap_tmux(command: ShellCommand, _: ShellScope) -> list[Layer] | None:
    words = tuple(word for word in command.words if word.text.casefold() not in _ENTER)
    return _unwrap_listed(command.with_words(words))


def _unwrap_python(command: ShellCommand, scope: ShellScope) -> list[Layer]:
    parsed = parse_wrapper("python", command.words[1:])
    if parsed is None:
        return []
    if "script" in parsed.values:
        return [PythonCode(parsed.values["script"].text, parsed.rest)]
    if "module" in parsed.values:
        return [command.with_words(select_module(parsed.values["module"], parsed.rest))]
    if not parsed.rest or parsed.rest[0].text == "-":
        return [] if command.stdin is None else [PythonCode(command.stdin, parsed.rest[1:])]
    text = scope.get_file(parsed.rest[0].text)
    if text is not None:
        return [PythonCode(text, parsed.rest[1:])]
    return [command.with_words(parsed.rest)]


def _unwrap_hatch(command: ShellCommand, _: ShellScope) -> list[Layer] | None:
    """Unwrap `hatch`; its `run` may have an environment's name: `env:command`."""
    parsed = parse_wrapper("hatch", command.words[1:])
    if parsed is None:
        return None
    if parsed.rest and ":" in parsed.rest[0].text and not parsed.wrapper.runs:
        first = parsed.rest[0]
        parsed.rest = (Word(first.text.partition(":")[2], first.known), *parsed.rest[1:])
    return build_layers(parsed, command)


def _unwrap_mise(command: ShellCommand, _: ShellScope) -> list[Layer] | None:
    """Unwrap `mise`; its `exec` has names of tools, then `--`, then the command."""
    texts = [word.text for word in command.words]
    if "--" in texts and {"exec", "x"} & set(texts[: texts.index("--")]):
        return [command.with_words(command.words[texts.index("--") + 1 :])]
    return _unwrap_listed(command)


def _unwrap_watcher(command: ShellCommand, _: ShellScope) -> list[Layer] | None:
    """Unwrap a watcher of pytest; it runs nothing for `--help` or `--version`."""
    if any(word.text in {"--help", "-h", "--version"} for word in command.words[1:]):
        return []
    return _unwrap_listed(command)


def _unwrap_xargs(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap `xargs`, which adds the words of its input."""
    parsed = parse_wrapper("xargs", command.words[1:])
    if parsed is None or not parsed.rest:
        return []
    added = (FROM_STDIN,) if command.stdin is None else make_words(*command.stdin.split())
    placeholder = _find_placeholder(command.words[1 : len(command.words) - len(parsed.rest)])
    words = [*parsed.rest, *added]
    if placeholder is not None:
        words = [new for word in parsed.rest for new in _replace(word, placeholder, added)]
    return [ShellCommand(tuple(words), command.environment)]


def _find_placeholder(options: tuple[Word, ...]) -> str | None:
    """Return the placeholder that `xargs` replaces; None if it appends words."""
    placeholder = None
    for at, word in enumerate(options):
        option = re.match(r"^(?:-\w*?[IJ](.*)|-\w*?i(.*)|--replace(?:=(.*))?)$", word.text)
        if option and option[1] is not None:
            placeholder = option[1] or (options[at + 1].text if at + 1 < len(options) else None)
        elif option:
            placeholder = option[2] or option[3] or "{}"
    return placeholder


def _replace(word: Word, placeholder: str, added: tuple[Word, ...]) -> tuple[Word, ...]:
    if placeholder not in word.text:
        return (word,)
    return tuple(
        Word(word.text.replace(placeholder, each.text), word.known and each.known) for each in added
    )


def _unwrap_parallel(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap GNU parallel, which adds the words after `:::` or of its input."""
    words = command.words[1:]
    separator = next((at for at, word in enumerate(words) if word.text.startswith(":::")), None)
    added = words[separator + 1 :] if separator is not None else (FROM_STDIN,)
    parsed = parse_wrapper("parallel", words[:separator])
    if separator is not None and parsed and not parsed.rest:
        return [ShellScript(word.text) for word in added]
    text = " ".join(word.text for word in parsed.rest) if parsed else ""
    added_text = " ".join(word.source_text for word in added)
    return [ShellScript(text.replace("{}", added_text) if "{}" in text else f"{text} {added_text}")]


def _unwrap_find(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap `find`: `-exec` runs a command with `{}` for each path."""
    layers: list[Layer] = []
    words = command.words[1:]
    for start, option in enumerate(words, 1):
        if option.text in {"-exec", "-execdir", "-ok", "-okdir"}:
            part = words[start:]
            end = next((at for at, word in enumerate(part) if word.text in {";", "+"}), len(part))
            layers.append(command.with_words(_mark_placeholders(part[:end])))
    return layers


def _mark_placeholders(words: tuple[Word, ...]) -> tuple[Word, ...]:
    return tuple(Word(word.text, known=False) if "{}" in word.text else word for word in words)


def _unwrap_fd(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Unwrap `fd`: `-x` runs a command with each path appended."""
    for at, word in enumerate(command.words):
        if word.text in {"-x", "--exec", "-X", "--exec-batch"}:
            words = _mark_placeholders(command.words[at + 1 :])
            return [command.with_words((*words, FROM_STDIN))]
    return []


def _unwrap_cmd(command: ShellCommand, _: ShellScope) -> list[Layer]:
    for at, word in enumerate(command.words[1:], 2):
        if _CMD_OPTION.match(word.text):
            first = _CMD_OPTION.sub("", word.text)
            texts = [*([first] if first else []), *(each.text for each in command.words[at:])]
            return [ShellScript(" ".join(texts), "cmd")]
    return []


def _unwrap_powershell(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Return the script that a call of PowerShell runs; empty for a script file."""
    words = command.words[1:]
    at = 0
    while at < len(words):
        name = words[at].text.casefold()
        if name[:1] not in "-/" or len(name) == 1:
            break
        name = name.lstrip("-/")
        at += 1
        if name == "ec" or "encodedcommand".startswith(name):
            return [
                ShellScript(_decode_command(word.text), "powershell") for word in words[at : at + 1]
            ]
        if "command".startswith(name) or name == "commandwithargs":
            break
        if "file".startswith(name):
            return []
        at += name in _POWERSHELL_VALUED
    text = " ".join(word.text for word in words[at:])
    return [ShellScript((command.stdin or "") if text in {"", "-"} else text, "powershell")]


def _decode_command(text: str) -> str:
    try:
        return base64.b64decode(text).decode("utf-16-le", "replace")
    except ValueError:
        return ""


def _unwrap_start_process(command: ShellCommand, _: ShellScope) -> list[Layer]:
    """Return the command of `Start-Process`; its arguments may be one text or a list."""
    words: list[Word] = []
    options = iter(command.words[1:])
    for word in options:
        name = word.text.casefold()
        if name in {"-workingdirectory", "-redirectstandardoutput", "-redirectstandarderror"}:
            next(options, None)
        elif name in _START_PROCESS_FLAGS or (len(name) > 1 and "-argumentlist".startswith(name)):
            continue
        elif not words:
            words.append(word)
        else:
            words += [Word(text, word.known) for text in word.text.replace(",", " ").split()]
    return [command.with_words(tuple(words))] if words else []


_UNWRAPPERS: dict[str, Callable[[ShellCommand, ShellScope], list[Layer] | None]] = {
    **dict.fromkeys(("ash", "bash", "dash", "fish", "ksh", "rbash", "sh", "zsh"), _unwrap_shell),
    **dict.fromkeys((".", "source"), _unwrap_source),
    "cmd": _unwrap_cmd,
    "command": _unwrap_builtin_command,
    "env": _unwrap_env,
    **dict.fromkeys(("eval", "iex", "invoke-expression", "trap"), _unwrap_text),
    **dict.fromkeys(("fd", "fdfind"), _unwrap_fd),
    "find": _unwrap_find,
    "hatch": _unwrap_hatch,
    "mise": _unwrap_mise,
    "parallel": _unwrap_parallel,
    **dict.fromkeys(("powershell", "pwsh"), _unwrap_powershell),
    **dict.fromkeys(("ptw", "pytest-watch"), _unwrap_watcher),
    **dict.fromkeys(("saps", "start-process"), _unwrap_start_process),
    "tmux": _unwrap_tmux,
    "xargs": _unwrap_xargs,
}
