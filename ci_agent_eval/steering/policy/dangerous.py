"""Detection of dangerous commands that destroy data irrecoverably, in named sets. Pure.

This prevents accidents of an agent. It is no sandbox and easy to evade.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ci_agent_eval.steering.policy.command_extraction import ExtractedCommand
from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, Word, get_program_name

_DISK = re.compile(r"(?:^|/)(?:dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk)\w*)$")
_WHOLE_TREE = frozenset({".", "./", "*", ":/", ":/.", ":/*"})
"""Pathspecs of git for all files."""
_ROOTS = re.compile(
    r"(?:/|~|\$HOME|\$\{HOME\}|/\w+|[A-Za-z]:|%SystemDrive%|\.\.)[\\/]?\*?", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class DangerousCommand:
    """A dangerous command, with the reason and the message for the agent."""

    command: str
    reason: str
    message: str


def find_danger(extracted: ExtractedCommand, sets: Iterable[str]) -> DangerousCommand | None:
    """Return the first dangerous command of the enabled sets; None if there is none."""
    from ci_agent_eval.steering.policy.command_walk import judge_commands  # noqa: PLC0415 - the grammar
    from ci_agent_eval.steering.policy.detection import clean_command  # noqa: PLC0415 - as above

    enabled_sets = [(name, *DANGEROUS_SETS[name]) for name in sets if name in DANGEROUS_SETS]

    def judge(
        command: ShellCommand, scope: ShellScope, _outermost: ShellCommand
    ) -> DangerousCommand | None:
        words = tuple(word.text for word in command.words)
        for name, is_dangerous, advice in enabled_sets:
            if is_dangerous(words, scope.directory):
                reason = f"it is one of the dangerous commands {name!r}"
                message = f"This command is held back: {advice} It was not run."
                return DangerousCommand(command.command_line, reason, message)
        return None

    readable = clean_command(extracted)
    layers = [] if readable is None else [readable]
    return next(judge_commands(layers, ShellScope(), judge), None)


def _get_program(words: Sequence[str]) -> str:
    return get_program_name(Word(words[0]))


def _has_flag(words: Sequence[str], letters: str, *names: str) -> bool:
    """Return whether the words contain a short option, also in a cluster, or a long one."""
    return any(
        word.lower() in names or (re.fullmatch(r"-[A-Za-z]+", word) and set(letters) & set(word))
        for word in words[1:]
    )


def _list_deleted_folders(words: Sequence[str]) -> Sequence[str]:
    """Return the targets of a command that deletes folders with their content."""
    program = _get_program(words)
    if program == "rm":
        recursive = _has_flag(words, "rR", "--recursive")
    elif program in {"rd", "rmdir", "del"}:
        recursive = any(word.lower() == "/s" for word in words)
    elif program in {"remove-item", "ri"}:
        recursive = _has_flag(words, "", "-recurse", "-r")
    else:
        return ()
    options = {"/s", "/q"}
    return [word for word in words[1:] if recursive and word.lower() not in options]


def _join_path(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(folder, target.replace("\\", "/")))


def _deletes_root(words: Sequence[str], folder: str | None) -> bool:
    targets = _list_deleted_folders(words)
    return any(
        _ROOTS.fullmatch(target) or (folder and _ROOTS.fullmatch(_join_path(folder, target)))
        for target in targets
    )


def _get_git_arguments(words: Sequence[str], command: str) -> Sequence[str] | None:
    """Return the words from `git`'s subcommand on; None for other commands."""
    if _get_program(words) != "git":
        return None
    arguments = list(words[1:])
    while arguments and arguments[0].startswith("-"):
        has_value = arguments[0] in {"-C", "-c", "--git-dir", "--work-tree"}
        arguments = arguments[2 if has_value else 1 :]
    return arguments if arguments[:1] == [command] else None


def _forces_push(words: Sequence[str], _folder: str | None) -> bool:
    arguments = _get_git_arguments(words, "push")
    if arguments is None:
        return False
    return _has_flag(arguments, "f", "--force", "--mirror") or any(
        word.startswith("+") for word in arguments[1:]
    )


def _discards_work(words: Sequence[str], folder: str | None) -> bool:
    return _discards_changes(words) or any(
        _is_project(target, folder) for target in _list_deleted_folders(words)
    )


def _discards_changes(words: Sequence[str]) -> bool:
    """Return whether a command of git discards changes that are not committed."""
    if reset := _get_git_arguments(words, "reset"):
        return "--hard" in reset
    if clean := _get_git_arguments(words, "clean"):
        return _has_flag(clean, "f", "--force") and not _has_flag(clean, "n", "--dry-run")
    if stash := _get_git_arguments(words, "stash"):
        return stash[1:2] in (["drop"], ["clear"])
    restore = _get_git_arguments(words, "restore") or ()
    if _has_flag(restore, "S", "--staged") and not _has_flag(restore, "W", "--worktree"):
        return False
    overwrite = restore or _get_git_arguments(words, "checkout")
    if not overwrite or _has_flag(overwrite, "p", "--patch"):
        return False
    return any(word in _WHOLE_TREE for word in overwrite[1:])


def _is_project(target: str, folder: str | None) -> bool:
    """Return whether a deleted target is the initial folder, a root entered before, or `.git`.

    The repository in another relative folder is mostly a template that the agent cloned.
    """
    if folder is None or _ROOTS.fullmatch(target):
        return False
    path = _join_path(folder, target)
    if path.startswith("/") and path.endswith("/.git"):
        return not path.startswith("/tmp/")  # noqa: S108 - no file is written
    return path in {".", ".git", ".git/*"} or _ROOTS.fullmatch(path) is not None


def _writes_disk(words: Sequence[str], _folder: str | None) -> bool:
    program = _get_program(words)
    if program == "dd":
        return any(word.startswith("of=") and _DISK.search(word) for word in words[1:])
    if program in {"wipefs", "shred", "fdisk", "parted", "sfdisk"}:
        return any(_DISK.search(word) for word in words[1:])
    if program in {"format-volume", "clear-disk"} or program.startswith("mkfs"):
        return len(words) > 1
    return program == "format" and any(re.fullmatch(r"[A-Za-z]:", word) for word in words[1:])


Predicate = Callable[[Sequence[str], str | None], bool]
"""Returns whether a command's words are dangerous in a folder, which is None if unknown."""

DANGEROUS_SETS: Mapping[str, tuple[Predicate, str]] = {
    "delete-root": (
        _deletes_root,
        (
            "it deletes a whole file system, a home folder or a folder at the root. "
            "Name the files or the folder inside of the project that you want to delete."
        ),
    ),
    "force-push": (
        _forces_push,
        (
            "it overwrites the history of a remote branch. "
            "Push without force, or use --force-with-lease on a branch of your own."
        ),
    ),
    "disk-write": (
        _writes_disk,
        "it writes to a disk past its file system. Write to a file instead.",
    ),
    "discard-work": (
        _discards_work,
        "it throws away changes that are not committed. Commit or stash them first.",
    ),
}
"""The sets of dangerous commands by their names in the configuration, each with its advice."""
