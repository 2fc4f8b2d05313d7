"""Where the agent works: a copy of the project, a shell, and a count of the tests that ran."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).parent / "project"


class Workshop:
    def __init__(self, folder):
        self.folder = folder / "project"
        shutil.copytree(PROJECT, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.tests = 0
        self.seconds = 0.0

    def bash(self, command: str) -> str:
        """Run a command in the project's folder."""
        output, tests, seconds = self._run(command)
        self.tests += tests
        self.seconds += seconds
        return output

    def replace(self, file: str, old: str, new: str) -> str:
        """Replace the first occurrence of a text in a file."""
        path = self.folder / file
        path.write_text(path.read_text().replace(old, new, 1))
        return f"changed {file}"

    def measure_whole_suite(self):
        """Return how many tests the whole suite has, and how many seconds it takes."""
        _, tests, seconds = self._run("pytest -q")
        return tests, seconds

    def _run(self, command):
        started = time.perf_counter()
        done = subprocess.run(
            ["bash", "-c", command],  # noqa: S607 - the agent's shell, wherever it is
            cwd=self.folder,
            env={"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.perf_counter() - started
        tests = sum(map(int, re.findall(r"(\d+) (?:passed|failed)", done.stdout)))
        return done.stdout.strip().rpartition("\n")[2], tests, seconds
