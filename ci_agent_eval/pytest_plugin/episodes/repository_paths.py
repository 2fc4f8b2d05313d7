"""Where something stands in the source: file relative to the repository root, and line."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType

import pytest


@dataclass(frozen=True, slots=True)
class RepositoryPaths:
    """Turns files into paths relative to the root of the repository under test."""

    root: Path

    @classmethod
    def of(cls, rootdir: Path, environ: Mapping[str, str]) -> RepositoryPaths:
        """Take the repository that pytest's rootdir is in, or the rootdir itself.

        A checkout without git's own folder is known by what GitHub's runner says.
        """
        for folder in (rootdir, *rootdir.parents):
            if (folder / ".git").exists():
                return cls(folder)
        workspace = Path(environ.get("GITHUB_WORKSPACE") or rootdir)
        return cls(workspace if rootdir.is_relative_to(workspace) else rootdir)

    def relative(self, path: str | Path) -> str | None:
        """Return the posix path below the root; None for a file of a library or elsewhere."""
        return _make_relative(self.root, str(path))

    def of_item(self, item: pytest.Item) -> tuple[str | None, int | None]:
        """Return the file and the 1-based line of a test."""
        line = item.location[1]
        return self.relative(item.path), None if line is None else line + 1

    def of_traceback(self, traceback: TracebackType | None) -> list[tuple[str, int]]:
        """Return the lines below the root that were running, the outermost first."""
        return [
            (file, line)
            for frame, line in walk_tb(traceback)
            if not _is_ours(frame) and (file := self.relative(frame.f_code.co_filename))
        ]

    def of_caller(self) -> tuple[str, int] | None:
        """Return the closest line below the root that led here and is not of this package."""
        return self.of_frame(sys._getframe(1))  # noqa: SLF001 - inspect.stack reads whole files

    def of_frame(self, innermost: FrameType) -> tuple[str, int] | None:
        """Return the closest line below the root that led to a frame and is not of this package."""
        for frame in _iter_frames(innermost):
            if not _is_ours(frame) and (file := self.relative(frame.f_code.co_filename)):
                return file, frame.f_lineno
        return None


@lru_cache(4096)
def _make_relative(root: Path, path: str) -> str | None:
    """Return the posix path below the root: the same few files are asked for again and again."""
    try:
        relative = Path(path).relative_to(root)
    except ValueError:
        return None
    return None if "site-packages" in relative.parts else relative.as_posix()


def _is_ours(frame: FrameType) -> bool:
    """Say whether the frame is this package's: by name, for its path may have been lent."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "ci_agent_eval"


def _iter_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
