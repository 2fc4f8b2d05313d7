"""Source locations: file relative to the repository root, and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType

import pytest


@dataclass(frozen=True, slots=True)
class RepositoryPaths:
    """Converts files to paths relative to the root of the repository under test."""

    root: Path

    @classmethod
    def find(cls, rootdir: Path, environ: Mapping[str, str]) -> RepositoryPaths:
        """Find the repository that contains pytest's rootdir, or use the rootdir itself.

        A checkout without git's own folder is located by the environment of GitHub's runner.
        """
        for folder in (rootdir, *rootdir.parents):
            if (folder / ".git").exists():
                return cls(folder)
        workspace = Path(environ.get("GITHUB_WORKSPACE") or rootdir)
        return cls(workspace if rootdir.is_relative_to(workspace) else rootdir)

    def relative(self, path: str | Path) -> str | None:
        """Return the posix path below the root; None for a library's file or one elsewhere."""
        return _make_relative(self.root, str(path))

    def locate_item(self, item: pytest.Item) -> tuple[str | None, int | None]:
        """Return the file and the 1-based line of a test."""
        line = item.location[1]
        return self.relative(item.path), None if line is None else line + 1

    def locate_traceback(self, traceback: TracebackType | None) -> list[tuple[str, int]]:
        """Return the running lines below the root, the outermost first."""
        return [
            (file, line)
            for frame, line in walk_tb(traceback)
            if not is_own_frame(frame) and (file := self.relative(frame.f_code.co_filename))
        ]

    def locate_frame(self, innermost: FrameType) -> tuple[str, int] | None:
        """Return the closest line below the root that led to a frame, outside of this package."""
        frame = self.find_frame(innermost)
        file = None if frame is None else self.relative(frame.f_code.co_filename)
        return None if frame is None or file is None else (file, frame.f_lineno)

    def find_frame(self, innermost: FrameType) -> FrameType | None:
        """Return the closest frame below the root that led to a frame, outside of this package."""
        found = (
            frame
            for frame in _iter_frames(innermost)
            if not is_own_frame(frame) and self.relative(frame.f_code.co_filename)
        )
        return next(found, None)


@lru_cache(4096)
def _make_relative(root: Path, path: str) -> str | None:
    """Return the posix path below the root; cached, because the same few files recur."""
    try:
        relative = Path(path).relative_to(root)
    except ValueError:
        return None
    return None if "site-packages" in relative.parts else relative.as_posix()


def is_own_frame(frame: FrameType) -> bool:
    """Return whether the frame is this package's: by module name, as its path may be rewritten."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "ci_agent_eval"


def _iter_frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
