"""Files of the runners themselves: each is judged as the runner judged it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from ci_agent_eval.analysis.loaded_results import LoadedResults
from ci_agent_eval.analysis.summary import summarize_results
from ci_agent_eval.contract.budgets import SuiteBudgets
from ci_agent_eval.gate.decision import decide_verdict
from ci_agent_eval.gate.model import GatePolicy
from ci_agent_eval.results.load import load_results
from tests.tables import each_row, read_sections, write_sections

FIXTURES = Path(__file__).parents[3] / "fixtures/junit"
JEST = "jest-junit-17.0.0.xml"

GO = "example.com/desk::Test"
GO_FLAKY = (f"{GO}Flaky", f"{GO}Group", f"{GO}Group/flaky")
SUREFIRE_FLAKY = ("FlakyTest::broken", "FlakyTest::flaky")
TODO = (2, 0, 0, 4)

JUDGED = {
    # name: does the runner pass, (passed, failed, error, skipped), passed only on a retry
    "pytest-9.2.0-subtests": (True, (3, 0, 0, 0), ()),
    "pytest-9.0.3-subtests": (True, (3, 0, 0, 0), ()),
    "pytest-subtests-0.15.0": (True, (3, 0, 0, 0), ()),
    "pytest-9.2.0-failing-subtests": (False, (2, 3, 2, 0), ()),
    "pytest-rerunfailures-16.7": (False, (2, 1, 0, 0), ("reruns::test_flaky",)),
    "unittest-xml-reporting-4.0.0": (False, (2, 1, 0, 0), ()),
    "surefire-3.5.4-junit4-flaky": (True, (3, 0, 0, 1), SUREFIRE_FLAKY),
    "surefire-3.0.0-junit4-flaky": (True, (3, 0, 0, 1), SUREFIRE_FLAKY),
    "surefire-2.22.2-junit4-flaky": (True, (3, 0, 0, 1), SUREFIRE_FLAKY),
    "surefire-3.5.4-junit4-broken": (False, (1, 1, 1, 0), ()),
    "surefire-3.5.4-junit5-flaky": (
        True,
        (4, 0, 0, 0),
        ("FlakyTest::amounts(int)[2]", "FlakyTest::flaky"),
    ),
    "surefire-3.5.4-testng-flaky": (True, (2, 0, 0, 0), ()),
    "gotestsum-1.13.0-rerun-fails": (True, (6, 0, 0, 0), GO_FLAKY),
    "gotestsum-1.13.0-rerun-fails-broken": (False, (5, 1, 0, 0), GO_FLAKY),
    "gotestsum-1.13.0-count": (False, (9, 3, 0, 0), ()),
    "go-junit-report-2.1.0-count": (False, (9, 3, 0, 0), ()),
    "node-20.20.2-todo": (True, TODO, ()),
    "node-22.23.3-todo": (True, TODO, ()),
    "node-24.21.0-todo": (True, TODO, ()),
    "node-20.20.2-parent": (False, (1, 0, 0, 0), ()),
    "node-22.23.3-parent": (False, (1, 0, 0, 0), ()),
    "node-24.21.0-parent": (False, (1, 0, 0, 0), ()),
    "jest-junit-17.0.0": (True, (2, 0, 0, 0), ()),
    "vitest-4.1.12": (True, (2, 0, 0, 0), ()),
    "mocha-junit-reporter-2.2.1": (True, (2, 0, 0, 0), ()),
    "playwright-1.65.1": (False, (2, 1, 0, 0), ()),
    "playwright-1.65.1-include-retries": (False, (2, 1, 0, 0), ("playwright.spec.ts::flaky",)),
}
STRICTER = {
    # pytest passes, and its file has the failures of an attempt that was retried.
    "pytest-rerunfailures-16.7-subtests": (False, (1, 1, 0, 0), ())
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the file of each runner."""
    folder = tmp_path_factory.mktemp("files")
    write_sections(FIXTURES / "files.txt", folder)
    shutil.copy(FIXTURES / JEST, folder)
    return folder


def read(folder: Path, name: str) -> LoadedResults:
    return load_results([], [f"{name}.xml"], root=folder)


def passes(loaded: LoadedResults) -> bool:
    verdict = decide_verdict(summarize_results(loaded, budgets=SuiteBudgets()), GatePolicy())
    return verdict.conclusion == "success"


@each_row("name", JUDGED | STRICTER)
def test_a_file_is_judged_as_its_runner_judged_it(files: Path, name: str) -> None:
    loaded = read(files, name)
    tally = loaded.tests.tally
    counts = (tally.passed, tally.failed, tally.error, tally.skipped)
    assert (passes(loaded), counts, loaded.tests.flaky) == (JUDGED | STRICTER)[name]


EXPLAINED = {
    "pytest-9.2.0-subtests": "tests 8 (found 3): pytest counts each subtest",
    "surefire-3.5.4-testng-flaky": "skipped 1 (found 0): its runner writes no case for some skipped tests",
    "surefire-3.5.4-junit5-flaky": "tests 2 (found 4); only the cases count",
}


@each_row("name", EXPLAINED)
def test_totals_that_the_producer_explains_are_told_and_do_not_gate(files: Path, name: str) -> None:
    (found,) = read(files, name).findings
    assert (found.kind, found.blocking) == ("declared_counts_differ", False)
    assert EXPLAINED[name] in found.message


@each_row(
    "name",
    ["surefire-2.22.2-junit4-flaky", "gotestsum-1.13.0-rerun-fails", "pytest-rerunfailures-16.7"],
)
def test_totals_of_every_attempt_are_right(files: Path, name: str) -> None:
    assert read(files, name).findings == ()


def test_a_test_of_node_that_failed_beside_its_subtests_is_told(files: Path) -> None:
    (found,) = read(files, "node-24.21.0-parent").findings
    assert found.blocking
    assert "node:test counts 1 failed test and wrote no failed case" in found.message


def test_the_documents_name_every_file_and_no_other() -> None:
    page = (FIXTURES / "README.md").read_text(encoding="utf-8")
    table = page.partition("## Producers")[2]
    names = {name.removesuffix(".xml") for name in (*read_sections(FIXTURES / "files.txt"), JEST)}
    assert names == (JUDGED | STRICTER).keys() == set(re.findall(r"`([\w.-]+)\.xml`", table))
