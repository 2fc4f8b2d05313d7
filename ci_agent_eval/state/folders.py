"""Files of a folder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ci_agent_eval.errors import InputError
from ci_agent_eval.state.snapshot import MAX_TEXT, Snapshot, describe_bytes

_PIECE = 1 << 20


def read_folder(folder: Path, snapshot: Snapshot) -> None:
    """Add every file below a folder; links are read as links and not followed.

    Raises InputError if the folder is gone, and OSError for a file that cannot be read.
    """
    if not folder.is_dir():
        raise InputError("there is no such folder")
    for path in _list_files(folder, folder, snapshot):
        name = path.relative_to(folder).as_posix()
        if not snapshot.is_ignored(name):
            snapshot.add(name, _read_file(path, snapshot))


def _list_files(root: Path, folder: Path, snapshot: Snapshot) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_dir():
            yield path
        elif not snapshot.is_ignored(f"{path.relative_to(root).as_posix()}/"):
            yield from _list_files(root, path, snapshot)


def _read_file(path: Path, snapshot: Snapshot) -> dict[str, object]:
    if path.is_symlink():
        return {"link": os.fsdecode(path.readlink())}
    if not path.is_file():
        return {"content": "no regular file"}
    size = path.stat().st_size
    snapshot.count_bytes(size)
    if size <= MAX_TEXT:
        return {"content": describe_bytes(path.read_bytes())}
    return {"content": {"bytes": size, "sha256": _hash_file(path)}}


def _hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()
