"""Atomic installation and removal of the hook in a coding agent's settings."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agent_settings import AgentSettings
from ci_agent_eval.steering.hook.hook_settings import (
    add_hook,
    find_hook_commands,
    is_initial,
    remove_hook,
)
from ci_agent_eval.steering.hook.opencode_plugin import (
    find_plugin_command,
    remove_plugin,
    render_plugin,
)
from ci_agent_eval.steering.locations import CONFIG_NAME

OPENCODE = "opencode"
_NEW_SETTINGS = """\
# Settings of `agent-eval steer`.
session:
  bare_directory: covers_testpaths
"""


def find_program() -> Path:
    """Return the absolute path of `agent-eval`. Raises InputError.

    It is beside Python in a virtual environment, and elsewhere with `pip install --user`. A name
    alone would be looked up on the agent's PATH, and an agent that does not find a hook's program
    runs the call without a word.
    """
    beside = Path(sys.executable).with_name("agent-eval")
    found = shutil.which("agent-eval")
    programs = [
        beside,
        beside.with_suffix(".exe"),
        Path(sys.argv[0]),
        *([Path(found)] if found else []),
    ]
    for program in programs:
        if program.stem == "agent-eval" and program.is_file():
            return program.absolute()
    raise InputError(f"{beside}: there is no such program; install ci-agent-eval with pip")


def build_hook_command(program: Path, agent: str, options: Mapping[str, str]) -> str:
    """Build the hook's command line."""
    words = [str(program), "steer", "hook", "--for", agent]
    words.append("--enable-pytest-full-suite-steering")
    for name, value in options.items():
        words += [f"--{name}", value]
    return shlex.join(words)


def install_hook(agent: AgentSettings, path: Path, command: str) -> bool:
    """Add the hook to the settings; return whether they changed. Raises InputError."""
    if agent.name == OPENCODE:
        return _edit_file(path, lambda text: render_plugin(command) + remove_plugin(text))
    return _edit_file(path, lambda text: add_hook(text, command, agent))


def create_settings(folder: Path) -> Path | None:
    """Write the settings of a project without any; return the new file. Raises InputError."""
    path = folder / CONFIG_NAME
    with _describe_errors(path):
        if path.exists():
            return None
        path.write_text(_NEW_SETTINGS, encoding="utf-8")
    return path


def uninstall_hook(agent: AgentSettings, path: Path) -> bool:
    """Remove the hook from the settings; return whether they changed. Raises InputError.

    A file that has our name, and contains nothing else, is deleted.
    """
    if agent.name == OPENCODE:
        changed = _edit_file(path, remove_plugin)
    else:
        changed = _edit_file(path, lambda text: remove_hook(text, agent))
    if changed and agent.is_own_file and is_initial(path.read_text(encoding="utf-8"), agent):
        path.unlink(missing_ok=True)
    return changed


def read_hook_commands(agent: AgentSettings, path: Path) -> list[str]:
    """Return the command lines of agent-eval's hooks in a file; empty if there is no file.

    Raises InputError.
    """
    with _describe_errors(path):
        text = path.read_bytes().decode() if path.exists() else ""
        if agent.name == OPENCODE:
            command = find_plugin_command(text)
            return [command] if command else []
        return find_hook_commands(text, agent)


def _edit_file(path: Path, edit: Callable[[str], str]) -> bool:
    # Settings are often a symbolic link to a dotfile: replace its target.
    target = Path(os.path.realpath(path))
    with _describe_errors(path):
        old_text = target.read_bytes().decode() if target.exists() else ""
        new_text = edit(old_text)
        if new_text == old_text:
            return False
        _replace_file(target, new_text)
    return True


@contextmanager
def _describe_errors(path: Path) -> Iterator[None]:
    """Turn errors into an InputError that names the file."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start}); repair it first") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be changed ({error.strerror or error})") from None
    except InputError as error:
        raise InputError(f"{path}: {error}; nothing was changed") from None


def _replace_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else 0o644
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
