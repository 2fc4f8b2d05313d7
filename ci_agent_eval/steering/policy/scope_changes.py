"""Commands that change the scope of later commands: working folder, aliases, parameters. Pure."""

from __future__ import annotations

import posixpath

from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, get_program_name

_CD_COMMANDS = frozenset({"cd", "pushd", "chdir", "set-location", "sl", "push-location"})


def update_scope(command: ShellCommand, scope: ShellScope) -> None:
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
