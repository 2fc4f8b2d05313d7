"""Validation of a hook's command before the doctor or an agent runs it."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

from ci_agent_eval.steering.hook.hook_settings import is_own_hook
from ci_agent_eval.steering.hook.options import parse_hook_options

_FIRST_OPTION = 3
"""The index of the first word after `agent-eval steer hook`."""


def find_command_problem(command: str) -> str | None:
    """Return why a command is not run, or None if `agent-eval steer install` writes such commands.

    A project's settings come with its repository, and agents run a hook's command in a shell:
    every word must therefore be one that the shell does not interpret.
    """
    if not is_own_hook(command):
        return "is no hook of agent-eval"
    words = shlex.split(command)
    if not Path(words[0]).is_absolute():
        return f"the program is no absolute path: {words[0]}"
    if shutil.which(words[0]) is None:
        return f"command not found: {words[0]}"
    if shlex.join(words) != command:
        return "is not quoted as `agent-eval steer install` does it"
    return parse_hook_options(words[_FIRST_OPTION:]).problem
