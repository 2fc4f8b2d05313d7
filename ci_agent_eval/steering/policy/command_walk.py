"""One walk over all commands that a text would start, directly or through other programs. Pure."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from ci_agent_eval.steering.policy.unwrap import unwrap_command
from ci_agent_eval.steering.policy.words import (
    PythonCode,
    ShellCommand,
    ShellScope,
    ShellScript,
    get_program_name,
)
from ci_agent_eval.steering.policy.wrappers import Layer
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
