"""Collect what earlier tests left, so that no later test is charged with it.

A client of an SDK is part of a reference cycle. If nobody closes it, the collector does, in whichever
test it happens to run; there the ResourceWarning of its connection is an error.
"""

from __future__ import annotations

import gc
import os
import stat
import sys
import warnings
from contextlib import suppress
from pathlib import Path


def collect_garbage() -> None:
    """Free unreachable objects; connections and files that are still open may be among them.

    An inner pytest stores the exception of its last failure in `sys`, with its frames.
    """
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def find_open_sockets() -> set[tuple[int, int]]:
    """Return descriptor and inode of each socket that this process has open."""
    found = set()
    for file in Path("/dev/fd").iterdir():
        with suppress(OSError):  # the listing's own descriptor, closed by now
            status = os.fstat(int(file.name))
            if stat.S_ISSOCK(status.st_mode):
                found.add((int(file.name), status.st_ino))
    return found
