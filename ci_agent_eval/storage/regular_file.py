"""Safe reading and atomic replacement of files in folders that a suite can write to.

Pipes must not block us, links must not redirect us, and temporary names are unpredictable.
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

_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_FLAGS: int = sum(
    getattr(os, name, 0) for name in ("O_RDONLY", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY")
)
"""Windows has only the first and the last one, and no flag against following links."""


class NotRegularError(OSError):
    """The path is not a regular file; `strerror` says so."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", str(path))


def open_regular(path: Path, *, follow: bool = False) -> BinaryIO:
    """Open a regular file for reading bytes; `follow` allows symbolic links.

    Raises OSError, and its subclass NotRegularError for a pipe, a device or a folder.
    """
    return os.fdopen(open_descriptor(path, follow=follow), "rb")


def open_regular_text(path: Path) -> IO[str]:
    """Open a regular file for reading lines with their line ends; any bytes are accepted.

    Raises as `open_regular` does; symbolic links are refused.
    """
    descriptor = open_descriptor(path)
    return os.fdopen(descriptor, encoding="utf-8", errors="surrogateescape", newline="")


def open_descriptor(path: Path, *, follow: bool = False) -> int:
    """Open a file without blocking, then check that it is a regular file."""
    if not (follow or _NO_FOLLOW) and path.is_symlink():
        raise NotRegularError(path)
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | _NO_FOLLOW)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegularError(path)


@contextmanager
def replace_file(path: Path) -> Iterator[IO[str]]:
    """Write a temporary file next to `path` and move it there once complete.

    Any bytes (surrogateescape) and line ends are preserved. Readers see the old file or the new
    one; an exception keeps the old one. Raises OSError.
    """
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with os.fdopen(
            descriptor, "w", encoding="utf-8", errors="surrogateescape", newline=""
        ) as file:
            # mkstemp creates files that only their owner can read.
            if hasattr(os, "fchmod"):  # Windows has it from Python 3.13 on
                os.fchmod(descriptor, 0o644)
            yield file
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
