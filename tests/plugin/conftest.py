"""A suite of episodes in a folder of its own, run by a pytest of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest
from _pytest.assertion.rewrite import AssertionRewritingHook

# An inner run in this process forgets the modules that it was the first to import, while a
# package keeps them as attributes: two runs would then have each a part of the other's.
import ci_agent_eval.pytest_plugin.session
import ci_agent_eval.recording.active_episode  # noqa: F401 - see above
from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import JournalLine, Results, Session

SCRIPTED_CLOCK = """
import itertools
import pytest

@pytest.fixture
def episode_clock():
    steps = itertools.count()
    return lambda: next(steps) / 10
"""


OPTING_OUT = """
from pytest import mark
from ci_agent_eval.pytest_plugin.collection.detection import is_episode

def pytest_itemcollected(item):
    if is_episode(item):
        item.add_marker(mark.episode(evidence="none"))
"""


def timed_out(seconds: float) -> str:
    """Return what pytest-timeout says, old versions in other words."""
    is_old = version("pytest-timeout").startswith(("2.1.", "2.2."))
    return f"Timeout >{seconds}s" if is_old else f"Timeout (>{seconds}s) from pytest-timeout."


@dataclass(frozen=True)
class Ran:
    """One run: what pytest said, and the files it left."""

    result: pytest.RunResult
    folder: Path

    @property
    def session(self) -> Session:
        return Session.model_validate_json((self.folder / "session.json").read_bytes())

    @property
    def results(self) -> Results:
        return Results.model_validate_json((self.folder / "results.json").read_bytes())

    @property
    def episodes(self) -> dict[str, Episode]:
        """By test name; the last attempt stands."""
        return {(e.nodeid or "").rpartition("::")[2]: e for e in self.results.episodes}

    @property
    def journal(self) -> list[JournalLine]:
        files = sorted((self.folder / "episodes").glob("*.jsonl"))
        lines = [line for file in files for line in file.read_bytes().splitlines()]
        return [JournalLine.model_validate_json(line) for line in lines]

    @property
    def properties(self) -> dict[str, dict[str, str]]:
        """JUnit properties by test name."""
        cases = ET.parse(self.folder / "junit.xml").iter("testcase")
        return {
            case.attrib["name"]: {
                p.attrib["name"]: p.attrib["value"] for p in case.iter("property")
            }
            for case in cases
        }


class ImportedModules:
    """A plugin that keeps the modules imported by inner runs in this process.

    pytester forgets them after each run and each test, while their packages keep them as
    attributes: the next run would import them again, for the engine in seconds, and mix copies.
    """

    def __init__(self, config: pytest.Config, folder: Path) -> None:
        self.config = config
        """The outer run's."""
        self.folder = folder
        """The suite's: its own modules are forgotten."""
        self.modules: dict[str, ModuleType] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        for name, module in list(sys.modules.items()):
            file = vars(module).get("__file__") or ""
            if not file.startswith(f"{self.folder}/"):
                self.modules[name] = module
                loader = getattr(vars(module).get("__spec__"), "loader", None)
                if isinstance(loader, AssertionRewritingHook):
                    loader.config = self.config  # the inner run's would keep all of its objects

    def restore(self) -> None:
        for name, module in self.modules.items():
            sys.modules.setdefault(name, module)


@dataclass(frozen=True)
class Suite:
    """Tests in a folder; `run` runs them in this process, `run_apart` in another one."""

    pytester: pytest.Pytester
    imported: ImportedModules
    opting_out: str = ""
    """What its conftest ends with."""

    def without_evidence(self) -> Suite:
        """The same for a test that is about something else: its episodes need no evidence."""
        self.pytester.makeconftest(OPTING_OUT)
        return replace(self, opting_out=OPTING_OUT)

    def write(self, tests: str, conftest: str = SCRIPTED_CLOCK) -> None:
        self.pytester.makeconftest(dedent(conftest) + self.opting_out)
        self.pytester.makepyfile(test_suite=tests)

    def run(self, *arguments: str) -> Ran:
        return self._ran(self.run_in_process(*self._with_files(arguments)))

    def run_in_process(self, *arguments: str) -> pytest.RunResult:
        """Run without the options for files."""
        result = self.pytester.runpytest_inprocess(*arguments, plugins=[self.imported])
        self.imported.restore()
        return result

    def run_apart(self, *arguments: str) -> Ran:
        return self._ran(self.pytester.runpytest_subprocess(*self._with_files(arguments)))

    def _with_files(self, arguments: tuple[str, ...]) -> list[str]:
        files = ["--episode-report-dir=report", "--junit-xml=report/junit.xml"]
        return [*files, *arguments]

    def _ran(self, result: pytest.RunResult) -> Ran:
        return Ran(result, self.pytester.path / "report")


@pytest.fixture
def imported_modules(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ImportedModules]:
    imported = ImportedModules(pytestconfig, tmp_path_factory.getbasetemp())
    yield imported
    imported.restore()


@pytest.fixture
def pytester(imported_modules: ImportedModules, pytester: pytest.Pytester) -> pytest.Pytester:
    """The same, which ends before `imported_modules` does."""
    return pytester


@pytest.fixture(autouse=True)
def inner_pytest(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the outer run's workers and plugins out of the inner one.

    After pytester, which clears this variable. Hypothesis' plugin would import all of
    hypothesis, rewritten, in every inner run: 1 s each.
    """
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest -p no:randomly")


@pytest.fixture
def suite(
    request: pytest.FixtureRequest, pytester: pytest.Pytester, imported_modules: ImportedModules
) -> Suite:
    """A suite; a module with `NEEDS_EVIDENCE = False` is about something else than evidence."""
    suite = Suite(pytester, imported_modules)
    needs_evidence = getattr(request.module, "NEEDS_EVIDENCE", True)
    return suite if needs_evidence else suite.without_evidence()


@pytest.fixture(params=[pytest.param("-n0", marks=pytest.mark.full), "-n2"])
def workers(request: pytest.FixtureRequest) -> str:
    """An option is shown with xdist, and in the full tier without it too."""
    return request.param
