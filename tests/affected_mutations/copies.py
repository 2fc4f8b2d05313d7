"""The project as a Git repository, and copies of it that are mutated."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.affected_mutations.mutation import OUTSIDE, Mutation

PROJECT = Path(__file__).parent / "project"

IGNORED = {".env": "SHOPDESK_OPT_TABLE=round\n"}
"""Files of the working tree that Git ignores."""

_OUTSIDE_FILES = {
    "site/ratecard.py": 'def find_rate(country):\n    return f"{country} costs 4"\n',
    "site/ratecard-1.0.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: ratecard\nVersion: 1.0.0\n",
    "site/ratecard-1.0.0.dist-info/RECORD": "ratecard.py,sha256=one,62\n",
    "site/pricelib-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: pricelib\nVersion: 1.0\n",
    "site/pricelib-1.0.dist-info/RECORD": "__editable__.pricelib.pth,sha256=one,9\n",
    "editable/pricelib.py": (
        "from pathlib import Path\n\n\n"
        "def find_price(item):\n"
        '    currency = Path(__file__).with_name("pricelib_currency.txt").read_text().strip()\n'
        '    return f"{item} listed at 5 {currency}"\n'
    ),
    "editable/pricelib_currency.txt": "EUR\n",
    "home/readme.txt": "The home folder.\n",
}

_IDENTITY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in [("NAME", "shop"), ("EMAIL", "shop@example.com")]
}


@dataclass(frozen=True)
class Workplace:
    """The folder of one run of the harness."""

    root: Path

    @property
    def project(self) -> Path:
        return self.root / "project"

    @property
    def outside(self) -> Path:
        return self.root / "outside"

    @property
    def baseline(self) -> Path:
        """The report folder of the baseline run."""
        return self.root / "baseline"

    def build_environ(self, changes: Mapping[str, str | None] | None = None) -> dict[str, str]:
        """Return the environment of all processes, with a mutation's changes."""
        paths = [self.outside / "site", self.outside / "editable"]
        python_path = os.pathsep.join(map(str, paths))
        base = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.outside / "home"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": python_path,
            "SHOPDESK_REGION": "north",
            "SHOPDESK_STORE": "/store",
            "SHOPDESK_OPT_COLOUR": "green",
            "SHOPDESK_API_KEY": "key-one",
        }
        merged = {**base, **(changes or {})}
        return {name: value for name, value in merged.items() if value is not None}

    def run_git(self, cwd: Path, *arguments: str) -> None:
        environ = {**self.build_environ(), **_IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull}
        command = ["git", *arguments]
        subprocess.run(command, cwd=cwd, env=environ, check=True, capture_output=True)

    def create_project(self) -> None:
        """Create the repository with one commit, and what lies outside of it."""
        shutil.copytree(PROJECT, self.project, symlinks=True)
        for script in self.project.glob("data/*.sql"):
            with closing(sqlite3.connect(script.with_suffix(".sqlite"))) as database:
                database.executescript(script.read_text("utf-8"))
            script.unlink()
        ignored = ["__pycache__/", "*.pyc", ".pytest_cache/", "/agent-eval-report/", *IGNORED]
        (self.project / ".gitignore").write_text("\n".join(ignored) + "\n", "utf-8")
        self.run_git(self.project, "init", "-q", "-b", "master")
        self.run_git(self.project, "add", "-A")
        self.run_git(self.project, "commit", "-q", "-m", "The project")
        _write_files(self.project, IGNORED)
        self.restore_outside()

    def restore_outside(self) -> None:
        shutil.rmtree(self.outside, ignore_errors=True)
        _write_files(self.outside, _OUTSIDE_FILES)

    def create_copy(self, mutation: Mutation, name: str) -> Path:
        """Return a clone of the project to which the mutation was applied."""
        copy = self.root / "copies" / name
        self.run_git(self.root, "clone", "-q", str(self.project), str(copy))
        _write_files(copy, IGNORED)
        for edit in mutation.edits:
            outside = edit.path.startswith(OUTSIDE)
            edit.apply((self.outside if outside else copy) / edit.path.removeprefix(OUTSIDE))
        if mutation.committed:
            self.run_git(copy, "add", "-A")
            self.run_git(copy, "commit", "-q", "--allow-empty", "-m", "Change the project")
        for command in mutation.git:
            self.run_git(copy, *command.split())
        return self._clone_shallow(copy) if mutation.shallow else copy

    def _clone_shallow(self, copy: Path) -> Path:
        shallow = copy.with_name(f"{copy.name}-shallow")
        self.run_git(self.root, "clone", "-q", "--depth=1", f"file://{copy}", str(shallow))
        _write_files(shallow, IGNORED)
        return shallow


def _write_files(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
