"""Walk over all commands that a command would start, directly or through wrappers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ci_agent_eval.steering.policy.command_extraction import (
    CommandLine,
    ExtractedCommand,
    render_command,
)
from ci_agent_eval.steering.policy.detection import MAX_TEXT_CHARACTERS, drop_invalid_characters
from ci_agent_eval.steering.policy.option_parser import Layer
from ci_agent_eval.steering.policy.scope_changes import update_scope
from ci_agent_eval.steering.policy.unwrap import unwrap_command
from ci_agent_eval.steering.policy.words import (
    PythonCode,
    ShellCommand,
    ShellScope,
    ShellScript,
    make_words,
)
from ci_agent_eval.steering.shells import get_command_parser

_MAX_LAYERS = 40


def walk_commands(extracted: ExtractedCommand) -> Iterator[tuple[ShellCommand, str | None]]:
    """Yield the commands in order, each wrapper before its inner command, with their folders.

    A folder is relative to the initial one unless it is absolute; None if unknown.
    """
    if len(render_command(extracted)) > MAX_TEXT_CHARACTERS:
        return
    layer: Layer
    if isinstance(extracted, CommandLine):
        text = drop_invalid_characters(extracted.text)
        layer = ShellScript(text, extracted.shell, same_shell=True)
    else:
        layer = ShellCommand(make_words(*map(drop_invalid_characters, extracted.words)))
    yield from _walk_layers([layer], ShellScope(), _MAX_LAYERS)


def _walk_layers(
    layers: Iterable[Layer], scope: ShellScope, depth: int
) -> Iterator[tuple[ShellCommand, str | None]]:
    for layer in layers if depth else ():
        if isinstance(layer, ShellScript):
            yield from _walk_script(layer, scope, depth)
        elif not isinstance(layer, PythonCode) and layer.words:
            yield layer, scope.directory
            inner = unwrap_command(layer, scope)
            if inner is None:
                update_scope(layer, scope)
            else:
                yield from _walk_layers(inner, scope, depth - 1)


def _walk_script(
    script: ShellScript, scope: ShellScope, depth: int
) -> Iterator[tuple[ShellCommand, str | None]]:
    if not scope.limits.spend(script.text):
        return
    inner = scope if script.same_shell else scope.create_child(script)
    commands = get_command_parser(script.shell)(script.text, inner)
    yield from _walk_layers(commands, inner, depth - 1)
