"""Readers of shell text, one for each shell: text in, the commands it runs out, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_agent_eval.steering.policy.model import Shell
from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope

CommandParser = Callable[[str, ShellScope], Iterator[ShellCommand]]


def get_command_parser(shell: Shell) -> CommandParser:
    """Return the reader of a shell's text; loads its grammar at the first call."""
    if shell == "powershell":
        from ci_agent_eval.steering.shells.powershell import commands_in  # noqa: PLC0415 - lazy
    elif shell == "cmd":
        from ci_agent_eval.steering.shells.cmd import commands_in  # noqa: PLC0415 - lazy
    else:
        from ci_agent_eval.steering.shells.bash import commands_in  # noqa: PLC0415 - lazy
    return commands_in
