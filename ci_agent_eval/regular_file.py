"""Opening files that a suite may have put there: a pipe must not hang us, nor a link mislead us."""

from __future__ import annotations

import errno
import os
import stat
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
    return os.fdopen(descriptor_of(path, follow=follow), "rb")


def open_regular_text(path: Path) -> IO[str]:
    """Open a regular file of any bytes to read its lines, each with its own line end.

    Raises as `open_regular` does; a symbolic link is none.
    """
    descriptor = descriptor_of(path)
    return os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape", newline="")


def descriptor_of(path: Path, *, follow: bool = False) -> int:
    """Open the file without waiting for a writer, and look what it is once it is open."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegularError(path)
