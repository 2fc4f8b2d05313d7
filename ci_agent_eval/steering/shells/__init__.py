"""Parsers of shell text, one for each shell, which yield the commands in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_agent_eval.steering.policy.model import Shell
from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope

CommandParser = Callable[[str, ShellScope], Iterator[ShellCommand]]


def get_command_parser(shell: Shell) -> CommandParser:
    """Return the parser of a shell's text; imports its grammar on first use."""
    if shell != "bash":
        from ci_agent_eval.steering.shells import windows  # noqa: PLC0415 - lazy

        is_cmd = shell == "cmd"
        return windows.parse_cmd_commands if is_cmd else windows.parse_powershell_commands
    from ci_agent_eval.steering.shells.bash import parse_bash_commands  # noqa: PLC0415 - lazy

    return parse_bash_commands
