"""Git repositories of tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

IDENTITY = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


class TestRepository:
    """A repository in a folder of a test."""

    __test__ = False

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = ""
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet")

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *IDENTITY, *words], cwd=self.folder, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_bytes().decode()
        assert old in text
        self.write(name, text.replace(old, new))

    def commit(self) -> str:
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", "x")
        return self.git("rev-parse", "HEAD")
