"""A suite in a folder of its own, run by a pytest of its own with exactly the plugins asked for.

Nothing here needs more than pytest itself, so that the same tests run on every pytest that we
support. `make compat` runs them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree as ET

import pytest

OURS = "ci_agent_eval"
"""Every plugin is loaded by the name of its entry point, as pytest itself would load it."""

DEADLINE_S = 120
"""No suite here takes more than a few seconds, on an idle machine; one that waits for input would wait for ever."""


IS_OLD_ASYNCIO = version("pytest-asyncio").startswith("0.23.")

OPTING_OUT = """
import pytest
from ci_agent_eval.pytest_plugin.collection.detection import is_episode

def pytest_itemcollected(item):
    if is_episode(item):
        item.add_marker(pytest.mark.episode(evidence="none"))
"""
"""A plugin of suites that are about something else than evidence."""


@dataclass(frozen=True)
class Ran:
    """One run: its exit status, what it said, and the files it left."""

    status: int
    output: str
    root: Path
    files: Mapping[str, bytes]
    """The files of its report by name, read at its end: the next run replaces them."""

    @property
    def junit(self) -> dict[str, str]:
        """What pytest's own JUnit file says of each test, by name."""
        cases = ET.fromstring(self._file("junit.xml")).iter("testcase")
        words = {"failure": "failed", "error": "error", "skipped": "skipped"}
        return {
            case.attrib["name"]: next(
                (words[child.tag] for child in case if child.tag in words), "passed"
            )
            for case in cases
        }

    @property
    def results(self) -> bytes:
        return self._file("results.json")

    @property
    def session(self) -> dict[str, Any]:
        return json.loads(self._file("session.json"))

    @property
    def evaluation(self) -> dict[str, Any]:
        return json.loads(self._file("eval-results.json"))

    @property
    def episodes(self) -> list[dict[str, Any]]:
        """Every attempt, as written down."""
        return json.loads(self.results)["episodes"]

    @property
    def outcomes(self) -> dict[str, str]:
        """How each episode's last attempt ended, by the name of its test."""
        return {test_name(e): e["outcome"] for e in self.episodes}

    def assertions(self, name: str) -> list[dict[str, Any]]:
        """Return the assertions of the only episode of a test."""
        (episode,) = (e for e in self.episodes if test_name(e) == name)
        return episode["assertions"]

    def _file(self, name: str) -> bytes:
        assert name in self.files, f"the run left no {name}; it said:\n{self.output}"
        return self.files[name]

    @property
    def reasons(self) -> dict[str, str | None]:
        return {test_name(e): e.get("reason") for e in self.episodes}


def test_name(episode: Mapping[str, Any]) -> str:
    return episode["nodeid"].rpartition("::")[2]


test_name.__test__ = False


@dataclass(frozen=True)
class Suite:
    """Files in a folder; `run` runs pytest on it as a process, warnings being errors."""

    root: Path
    concurrency: int = 1
    """How many episodes may run at once."""
    opts_out: bool = False
    """Whether its episodes need no evidence."""

    def without_evidence(self) -> Suite:
        """The same for a test that is about something else."""
        self.write(opting_out=OPTING_OUT)
        return replace(self, opts_out=True)

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / f"{name}.py").write_text(dedent(text), "utf-8")

    def configure(self, **settings: str) -> None:
        lines = [f"{key} = {value}" for key, value in settings.items()]
        (self.root / "pytest.ini").write_text("\n".join(["[pytest]", *lines, ""]), "utf-8")

    def configure_asyncio(self, scope: str = "function", **settings: str) -> None:
        """Set the scope of its fixtures' loops: newer ones warn without it, the oldest has none."""
        scoped = {} if IS_OLD_ASYNCIO else {"asyncio_default_fixture_loop_scope": scope}
        self.configure(**scoped, **settings)

    def run(
        self,
        *arguments: str,
        plugins: tuple[str, ...] = (),
        without_ours: bool = False,
        stdin: str = "",
    ) -> Ran:
        """Run with these plugins and ours, and with no other."""
        names = plugins if without_ours else (OURS, *plugins)
        # pytest-rerunfailures imports xdist, which would be too late to be rewritten.
        names = sorted(names, key=lambda name: name != "xdist")
        loaded = [part for name in names for part in ("-p", name)]
        loaded += ["-p", "opting_out"] if self.opts_out and OURS in names else []
        ours = ["--episode-report-dir=report", f"--episode-concurrency={self.concurrency}"]
        files = ours if OURS in names else []
        return self.run_module(
            *("pytest", "-W", "error", "--junit-xml=report/junit.xml"),
            *(*loaded, *files, *arguments),
            stdin=stdin,
        )

    def run_module(self, *command: str, stdin: str = "", autoload: bool = False) -> Ran:
        """Run a module of the environment in the folder."""
        done = subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.root,
            env=clean_environ() | ({} if autoload else {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}),
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        left = [path for path in (self.root / "report").glob("*") if path.is_file()]
        files = {path.name: path.read_bytes() for path in left}
        return Ran(done.returncode, done.stdout, self.root, files)


def clean_environ() -> dict[str, str]:
    """Return the environment without what the outer pytest and its workers put into it."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


@pytest.fixture(params=[1, 8], ids=["one-by-one", "concurrent"])
def suite(request: pytest.FixtureRequest, tmp_path: Path) -> Suite:
    # Its own root, wherever the temporary folder lies.
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    suite = Suite(tmp_path, request.param)
    needs_evidence = getattr(request.module, "NEEDS_EVIDENCE", True)
    return suite if needs_evidence else suite.without_evidence()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Add a fixture to a test that has been made, as the plugin does with its recorder."""
    for item in session.items:
        if "seen" in item.fixturenames:
            item.fixturenames = [*item.fixturenames, "added_late"]
