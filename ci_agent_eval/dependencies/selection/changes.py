"""The files that differ between the baseline's commit and a tree, read from git alone."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from ci_agent_eval.dependencies.code_blocks import CodeBlocks, parse_code, split_code
from ci_agent_eval.dependencies.git import GitRepository, split_paths

_LINK = "120000"
_SUBMODULE = "160000"
_LFS_POINTER = b"version https://git-lfs.github.com/spec/"


@dataclass(frozen=True)
class FileChange:
    """A file that differs between two trees, with both contents."""

    path: str
    old: bytes | None = field(default=None, repr=False)
    """None: it is new."""
    new: bytes | None = field(default=None, repr=False)
    """None: it was deleted."""
    is_special: bool = False
    """Whether git holds something other than its content: a submodule, or a pointer of LFS."""

    @cached_property
    def _blocks(self) -> tuple[CodeBlocks | None, CodeBlocks | None]:
        return _split(self.old), _split(self.new)

    @property
    def has_new_definitions(self) -> bool:
        """Whether anything outside of its functions' bodies changed, or cannot be compared."""
        old, new = self._blocks
        return old is None or new is None or old.definitions != new.definitions

    @property
    def has_new_code(self) -> bool:
        """Whether more than comments and blank lines changed, or nothing can be compared."""
        old, new = self._blocks
        return (
            old is None
            or new is None
            or (old.definitions, old.bodies)
            != (
                new.definitions,
                new.bodies,
            )
        )

    def has_new_body(self, function: str) -> bool:
        """Return whether a function's body changed, or cannot be compared."""
        old, new = self._blocks
        if old is None or new is None:
            return True
        return old.bodies.get(function) != new.bodies.get(function)


def _split(content: bytes | None) -> CodeBlocks | None:
    tree = None if content is None else parse_code(content)
    return None if tree is None else split_code(tree)


@dataclass(frozen=True, slots=True)
class TreeChanges:
    """All differences of two trees; empty: nothing that git tracks or sees changed."""

    files: Mapping[str, FileChange] = field(default_factory=dict)
    folders: frozenset[str] = frozenset()
    """Folders of the first tree, except its root."""

    @property
    def added(self) -> tuple[str, ...]:
        """The paths of new files."""
        return tuple(path for path, one in self.files.items() if one.old is None)

    @property
    def removed(self) -> tuple[str, ...]:
        """The paths of deleted files."""
        return tuple(path for path, one in self.files.items() if one.new is None)


def compare_trees(
    repository: GitRepository,
    base: str,
    head: str | None,
    hashes: Mapping[str, str],
    absent: Collection[str] = (),
) -> TreeChanges:
    """Compare a commit with another one or, without one, with the working tree.

    `hashes` are the SHA-256 of the files that the baseline's run read from disk. A file whose
    blob in `base` has another hash counts as changed: git does not have the bytes that the run
    read.
    `absent` are paths without a file in that run: git does not show a new one that it ignores.
    In the working tree the bytes of those files are compared, too: git can hide a change.
    Raises OSError or subprocess.SubprocessError if git fails.
    """
    reader = _BlobReader(repository)
    words = ("diff", "--raw", "-z", "--no-abbrev", "--no-renames", "--no-ext-diff", base)
    fields = split_paths(repository.run(*words, *(() if head is None else (head,)), "--"))
    files: dict[str, FileChange] = {}
    for entry, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old, new, _ = entry.lstrip(":").split(" ")
        before = reader.read(old)
        after = reader.read(new) if head is not None else _read_disk(repository.top / path)
        special = _SUBMODULE in {old_mode, new_mode} or _is_pointer(before) or _is_pointer(after)
        if before != after or old_mode != new_mode or special:
            files[path] = FileChange(path, before, after, special)
    if head is None:
        for path in (*repository.list_new(), *filter(_exists_in(repository), absent)):
            files[path] = FileChange(path, None, _read_disk(repository.top / path))
        files |= _find_hidden_changes(reader, base, hashes, files)
    files |= _find_other_bytes(reader, base, hashes, files)
    folders = split_paths(repository.run("ls-tree", "-z", "-r", "-d", "--name-only", base))
    return TreeChanges(dict(sorted(files.items())), frozenset(folders))


def _find_hidden_changes(
    reader: _BlobReader, base: str, hashes: Mapping[str, str], known: Mapping[str, object]
) -> dict[str, FileChange]:
    """Return the files that differ from those of the earlier run, although git shows no change.

    Reasons are line ends by `core.autocrlf`, links as files, a sparse checkout, and the flags
    `assume-unchanged` and `skip-worktree`.
    """
    top = reader.repository.top
    links = reader.list_links(base)
    differing = {}
    for path, digest in hashes.items():
        now = _read_disk(top / path) if path not in known else None
        if path not in known and (
            now is None
            or sha256(now).hexdigest() != digest
            or (path in links) != (top / path).is_symlink()
        ):
            differing[path] = now
    before = reader.read_paths(base, list(differing))
    return {
        path: FileChange(path, before[path], now)
        for path, now in differing.items()
        if before[path] is not None  # git tracks it
    }


def _find_other_bytes(
    reader: _BlobReader, base: str, hashes: Mapping[str, str], known: Mapping[str, object]
) -> dict[str, FileChange]:
    """Return the files whose bytes on disk were not those of the base commit."""
    found = {}
    for path, content in reader.read_paths(base, [p for p in hashes if p not in known]).items():
        if content is None or sha256(content).hexdigest() != hashes[path]:
            found[path] = FileChange(path, None, content)
    return found


def _exists_in(repository: GitRepository) -> Callable[[str], bool]:
    return lambda path: (repository.top / path).exists()


def _is_pointer(content: bytes | None) -> bool:
    return content is not None and content.startswith(_LFS_POINTER)


def _read_disk(path: Path) -> bytes | None:
    """Return a file's bytes, or the target of a symbolic link; None if there is neither."""
    try:
        return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return None


@dataclass(frozen=True, slots=True)
class _BlobReader:
    """Reads blobs in one call of git."""

    repository: GitRepository

    def read(self, blob: str) -> bytes | None:
        """Return a blob's content; None for the id of nothing, and for a submodule's commit."""
        if not blob.strip("0"):
            return None
        try:
            return self.repository.run("cat-file", "blob", blob)
        except subprocess.CalledProcessError:
            return None

    def list_links(self, commit: str) -> frozenset[str]:
        """Return the paths of a commit's symbolic links."""
        entries = split_paths(self.repository.run("ls-tree", "-z", "-r", commit))
        found = (entry.partition("\t") for entry in entries)
        return frozenset(path for mode, _, path in found if mode.startswith(_LINK))

    def read_paths(self, commit: str, paths: list[str]) -> dict[str, bytes | None]:
        """Return the contents of a commit's files; None for a path without a file."""
        names = "".join(f"{commit}:{path}\n" for path in paths if "\n" not in path)
        output = self.repository.run_with_input(
            names.encode("utf-8", "surrogateescape"), "cat-file", "--batch"
        )
        found: dict[str, bytes | None] = dict.fromkeys(paths)
        position = 0
        for path in (path for path in paths if "\n" not in path):
            end = output.index(b"\n", position)
            header = output[position:end].split(b" ")
            position = end + 1
            if len(header) == 3 and header[1] == b"blob":
                size = int(header[2])
                found[path] = output[position : position + size]
                position += size + 1
        return found
