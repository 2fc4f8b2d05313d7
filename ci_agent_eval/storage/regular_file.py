"""Reading and replacing files where a suite may have put its own.

A pipe must not hang us, a link must not mislead us, and no name must be foreseeable.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, BinaryIO


class NotRegularError(OSError):
    """The path leads to no regular file; `strerror` says so."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", str(path))


def open_regular(path: Path, *, follow: bool = False) -> BinaryIO:
    """Open a regular file to read its bytes; `follow` lets symbolic links lead to it.

    Raises OSError, and NotRegularError of its kind for a pipe, a device or a folder.
    """
    return os.fdopen(open_descriptor(path, follow=follow), "rb")


def open_regular_text(path: Path) -> IO[str]:
    """Open a regular file of any bytes to read its lines, each with its own line end.

    Raises as `open_regular` does; a symbolic link is none.
    """
    descriptor = open_descriptor(path)
    return os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape", newline="")


def open_descriptor(path: Path, *, follow: bool = False) -> int:
    """Open the file without waiting for a writer, and look what it is once it is open."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegularError(path)


@contextmanager
def replace_file(path: Path) -> Iterator[IO[str]]:
    """Write a file beside `path`, under a name of its own, and move it there when all is written.

    Bytes of any text file survive (surrogateescape), and so do line ends. Readers see the
    old file or the new one; an exception leaves the old one. Raises OSError.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    beside = Path(name)
    try:
        with os.fdopen(
            descriptor, "w", encoding="utf-8", errors="surrogateescape", newline=""
        ) as file:
            # A temporary file is its owner's alone; what others make of the report is not.
            os.fchmod(descriptor, 0o644)
            yield file
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
