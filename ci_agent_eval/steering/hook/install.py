"""Claude Code's settings file, changed in one step: the old content or the new, never a part."""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.claude_settings import add_hook, remove_hook


def get_project_settings(root: Path) -> Path:
    """Return the settings that a project shares."""
    return root / ".claude/settings.json"


def get_user_settings(environ: Mapping[str, str], home: Path) -> Path:
    """Return a person's own settings: https://code.claude.com/docs/en/settings."""
    return Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude") / "settings.json"


def build_hook_command(program: str, options: Mapping[str, str]) -> str:
    """Return the command that Claude Code runs."""
    words = [program, "steer", "hook", "--for", "claude-code"]
    words.append("--enable-pytest-full-suite-steering")
    for name, value in options.items():
        words += [f"--{name}", value]
    return shlex.join(words)


def install_hook(path: Path, command: str) -> bool:
    """Put the hook into the settings; say whether that changed them. Raises InputError."""
    return _edit_file(path, lambda text: add_hook(text, command))


def uninstall_hook(path: Path) -> bool:
    """Take the hook out of the settings; say whether that changed them. Raises InputError."""
    return _edit_file(path, remove_hook)


def _edit_file(path: Path, edit: Callable[[str], str]) -> bool:
    # Settings are often a symbolic link into somebody's dotfiles: the file itself is replaced.
    real = Path(os.path.realpath(path))
    try:
        before = real.read_bytes().decode() if real.exists() else ""
        after = edit(before)
        if after == before:
            return False
        _replace_file(real, after)
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
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
