"""Detection of dangerous commands that destroy data irrecoverably, in named sets. Pure.

This prevents accidents of an agent. It is no sandbox and easy to evade.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ci_agent_eval.steering.policy.command_extraction import ExtractedCommand
from ci_agent_eval.steering.policy.model import Steer
from ci_agent_eval.steering.policy.words import ShellCommand, ShellScope, Word, get_program_name

DANGEROUS_COMMANDS = "dangerous-commands"
"""The handler's name in decisions."""

_WORD_END = r"(?: |$)"
_RECURSIVE = re.compile(
    rf"rm .*(?<= )(?:-[A-Za-z]*[rR][A-Za-z]*|--recursive){_WORD_END}"
    rf"|(?:rd|rmdir|del) .*(?<= )/s{_WORD_END}"
    rf"|(?:remove-item|ri) .*(?<= )-r(?:ecurse)?{_WORD_END}",
    re.IGNORECASE,
)
"""Commands that delete folders with their content."""
_GIT = r"git(?: (?:-C|-c|--git-dir|--work-tree) \S+| -\S+)* "
_FORCED_PUSH = re.compile(
    rf"{_GIT}push .*(?<= )(?:-[A-Za-z]*f[A-Za-z]*|--force|--mirror|\+\S*){_WORD_END}"
)
_ONLY_STAGED = (
    rf"(?=.* (?:-[A-Za-z]*S[A-Za-z]*|--staged){_WORD_END})"
    rf"(?!.* (?:-[A-Za-z]*W[A-Za-z]*|--worktree){_WORD_END})"
)
_DISCARD = re.compile(
    rf"{_GIT}(?:reset(?: .*)? --hard{_WORD_END}"
    rf"|clean(?!.* (?:-[A-Za-z]*n[A-Za-z]*|--dry-run){_WORD_END})"
    rf".* (?:-[A-Za-z]*f[A-Za-z]*|--force){_WORD_END}"
    rf"|stash (?:drop|clear){_WORD_END}"
    rf"|(?:checkout|restore(?!{_ONLY_STAGED}))(?!.* (?:-[A-Za-z]*p[A-Za-z]*|--patch){_WORD_END})"
    # Pathspecs for all files.
    rf".* (?:\.|\./|\*|:/[.*]?){_WORD_END})"
)
"""Commands of git that discard changes which are not committed."""
_DISK = r"(?:\S*/)?dev/(?:sd|hd|vd|xvd|nvme|mmcblk|disk|rdisk)\w*"
_DISK_WRITE = re.compile(
    rf"dd .*of={_DISK}{_WORD_END}"
    rf"|(?:wipefs|shred|fdisk|parted|sfdisk) .*(?<= ){_DISK}{_WORD_END}"
    rf"|(?:format-volume|clear-disk|mkfs\S*) ."
    rf"|format .*(?<= )[A-Za-z]:{_WORD_END}"
)
_ROOTS = re.compile(
    r"(?:/|~|\$HOME|\$\{HOME\}|/\w+|[A-Za-z]:|%SystemDrive%|\.\.)[\\/]?\*?", re.IGNORECASE
)


def find_danger(extracted: ExtractedCommand, sets: Iterable[str]) -> Steer | None:
    """Return the decision on the first dangerous command of the sets; None if there is none."""
    from ci_agent_eval.steering.policy.command_walk import judge_commands  # noqa: PLC0415 - the grammar
    from ci_agent_eval.steering.policy.detection import clean_command  # noqa: PLC0415 - as above

    enabled_sets = [(name, *DANGEROUS_SETS[name]) for name in sets if name in DANGEROUS_SETS]

    def judge(command: ShellCommand, scope: ShellScope, _outermost: ShellCommand) -> Steer | None:
        words = tuple(word.text for word in command.words)
        for name, is_dangerous, advice in enabled_sets:
            if is_dangerous(words, scope.directory):
                reason = f"it is one of the dangerous commands {name!r}"
                message = f"This command is held back: {advice} It was not run."
                return Steer(message, reason, DANGEROUS_COMMANDS, command.command_line)
        return None

    readable = clean_command(extracted)
    layers = [] if readable is None else [readable]
    return next(judge_commands(layers, ShellScope(), judge), None)


def _join_words(words: Sequence[str]) -> str:
    """Return a command on one line, with single blanks between its words and none in them."""
    program = get_program_name(Word(words[0]))
    return " ".join([program, *(re.sub(r"\s", "_", word) for word in words[1:])])


def _list_deleted_folders(words: Sequence[str]) -> Sequence[str]:
    """Return the targets of a command that deletes folders with their content."""
    is_recursive = _RECURSIVE.match(_join_words(words))
    return [word for word in words[1:] if word.lower() not in {"/s", "/q"}] if is_recursive else ()


def _join_path(folder: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(folder, target.replace("\\", "/")))


def _deletes_root(words: Sequence[str], folder: str | None) -> bool:
    targets = _list_deleted_folders(words)
    return any(
        _ROOTS.fullmatch(target) or (folder and _ROOTS.fullmatch(_join_path(folder, target)))
        for target in targets
    )


def _forces_push(words: Sequence[str], _folder: str | None) -> bool:
    return _FORCED_PUSH.match(_join_words(words)) is not None


def _discards_work(words: Sequence[str], folder: str | None) -> bool:
    return _DISCARD.match(_join_words(words)) is not None or any(
        _is_project(target, folder) for target in _list_deleted_folders(words)
    )


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
    return _DISK_WRITE.match(_join_words(words)) is not None


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
