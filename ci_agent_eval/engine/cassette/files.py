"""Cassette files: one per scenario, read and written as a whole.

Several processes may write takes of one scenario at once (xdist's workers do). Each locks the
folder while it reads the file, adds its take and replaces the file. The kernel holds the lock:
it leaves no file, and ends with a killed process.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ci_agent_eval.contract.jsonable import clean_text
from ci_agent_eval.engine.cassette.document import (
    Cassette,
    OldCassetteError,
    Take,
    parse_cassette,
    render_cassette,
)
from ci_agent_eval.errors import InputError
from ci_agent_eval.storage.regular_file import open_regular, replace_file

FOLDER = "cassettes"
"""The folder's name, in the folder of the suite."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_MAX_NAME_LENGTH = 80


def build_cassette_path(folder: Path, scenario: str) -> Path:
    """Return the path of a scenario's cassette, unique for each scenario."""
    name = _UNSAFE.sub("_", scenario).lstrip(".")[:_MAX_NAME_LENGTH]
    # Some file systems ignore case.
    if name != scenario or name != name.lower():
        name += "-" + hashlib.sha256(scenario.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return folder / f"{name}.yaml"


def load_cassette(path: Path, scenario: str, *, is_replaced: bool = False) -> Cassette:
    """Load a cassette; a missing file gives an empty one. Raises InputError.

    With `is_replaced` a file of an old format gives an empty one, too.
    """
    try:
        with open_regular(path, follow=True) as file:
            text = file.read().decode()
    except FileNotFoundError:
        return Cassette(scenario)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cassette {path} cannot be read: {error}") from error
    try:
        return parse_cassette(text, str(path))
    except OldCassetteError:
        if is_replaced:
            return Cassette(scenario)
        raise


def store_take(path: Path, scenario: str, iteration: int, take: Take) -> None:
    """Replace the take of an iteration; safe for concurrent writers. Raises InputError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _lock_folder(path.parent):
            old = load_cassette(path, scenario, is_replaced=True)
            new = Cassette(scenario, old.takes).with_take(iteration, take)
            with replace_file(path) as file:
                file.write(clean_text(render_cassette(new)))
    except OSError as error:
        raise InputError(f"cassette {path} cannot be written: {error}") from error


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
