"""Atomic installation and removal of the hook in Claude Code's settings file."""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.claude_settings import add_hook, remove_hook


def get_project_settings_path(root: Path) -> Path:
    """Return the path of a project's shared settings."""
    return root / ".claude/settings.json"


def get_user_settings_path(environ: Mapping[str, str], home: Path) -> Path:
    """Return the path of a user's settings: https://code.claude.com/docs/en/settings."""
    return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "settings.json"


def build_hook_command(program: str, options: Mapping[str, str]) -> str:
    """Build the hook's command line."""
    words = [program, "steer", "hook", "--for", "claude-code"]
    words.append("--enable-pytest-full-suite-steering")
    for name, value in options.items():
        words += [f"--{name}", value]
    return shlex.join(words)


def install_hook(path: Path, command: str) -> bool:
    """Add the hook to the settings; return whether they changed. Raises InputError."""
    return _edit_file(path, lambda text: add_hook(text, command))


def uninstall_hook(path: Path) -> bool:
    """Remove the hook from the settings; return whether they changed. Raises InputError."""
    return _edit_file(path, remove_hook)


def _edit_file(path: Path, edit: Callable[[str], str]) -> bool:
    # Settings are often a symbolic link to a dotfile: replace its target.
    target = Path(os.path.realpath(path))
    try:
        old_text = target.read_bytes().decode() if target.exists() else ""
        new_text = edit(old_text)
        if new_text == old_text:
            return False
        _replace_file(target, new_text)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 (byte {error.start}); repair it first") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be changed ({error.strerror or error})") from None
    except InputError as error:
        raise InputError(f"{path}: {error}; nothing was changed") from None
    return True


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
