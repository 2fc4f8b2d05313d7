"""Several cases of one test in one file: retries are merged, and nothing else is."""

from __future__ import annotations

import io

from ci_agent_eval.results.junit.reader import JUnitFile, read_junit
from tests.builders import junit_case, junit_xml
from tests.tables import each_row

FAILED = "<failure message='Failed'/>"


def read(document: str, **options) -> JUnitFile:
    return read_junit(io.BytesIO(document.encode()), **options)


def go(*packages: str, root: str = 'errors="0"', suite: str = "") -> str:
    """A file of gotestsum, from packages such as "-A -A +A +B": failed and passed runs."""
    version = '<properties><property name="go.version" value="go1.26.8"/></properties>'
    suites = "".join(
        f'<testsuite name="p{number}" {suite}>{version}{go_cases(runs)}</testsuite>'
        for number, runs in enumerate(packages)
    )
    return f"<testsuites {root}>{suites}</testsuites>"


def go_cases(runs: str) -> str:
    bodies = {"-": FAILED, "+": "", "/": "<skipped/>"}
    return "".join(junit_case(bodies[run[0]], classname="p", name=run[1:]) for run in runs.split())


def told(file: JUnitFile) -> tuple[list[str], list[str], int]:
    failing = [case.name for case in file.failing]
    assert file.counts.failed == len(failing)
    return failing, [case.name for case in file.flaky], file.counts.passed


@each_row(
    ("packages", "failing", "flaky", "passed"),
    [
        (["-A +B +A"], [], ["A"], 2),
        (["-A -A +B +A"], [], ["A"], 2),
        (["-A -A -A +B"], ["A"], [], 1),
        # The one that proves a rerun may be of another package.
        (["-A +A", "+B"], [], ["A"], 2),
        # A rerun of a subtest is one of its parent.
        (["-T/a -T +B +T/a +T"], [], ["T/a", "T"], 3),
        (["-T/a -T/b -T +B +T/a +T/b +T +T"], [], ["T/a", "T/b", "T"], 4),
        (["-T/a -T -T/a -T +B +T/a +T"], [], ["T/a", "T"], 3),
        # A parent that failed itself is rerun with all of its subtests.
        (["-T +B +T/a +T/a +T"], [], ["T"], 3),
        # Of two that failed only one passed at last.
        (["-A -T/a -T -T/a -T +B +A"], ["T/a", "T"], ["A"], 2),
    ],
)
def test_a_test_that_gotestsum_reran_is_one_test(packages, failing, flaky, passed) -> None:
    assert told(read(go(*packages))) == (failing, flaky, passed)


@each_row(
    "packages",
    [
        # -count=2
        ["-A +A +B +B"],
        ["-A +A /B /B"],
        ["-A +A", "+B +B"],
        ["-T/a -T +T/a +T +B +B"],
        # -count=2, and nothing besides
        ["-A +A"],
        ["-A +A", "-B +B"],
        # -count=3
        ["-A +A +A", "+B"],
        # Another order than gotestsum's
        ["+A -A +A +B"],
        # A retry that is skipped erases no failure.
        ["-A /A +B"],
    ],
)
def test_a_failure_that_no_rerun_is_proven_to_follow_stays(packages) -> None:
    assert read(go(*packages)).counts.failed > 0


def test_a_parent_that_failed_without_its_subtests_is_not_recovered() -> None:
    # The subtests a and b fail. In the rerun of b, and again alone, the parent itself fails.
    file = read(go("-T/a -T/b -T -T -T +B +T/a +T +T/b"))
    assert told(file) == (["T"], ["T/a", "T/b"], 3)


def test_the_last_failure_is_the_one_that_is_kept() -> None:
    cases = [junit_case(f"<failure message='{n}'/>", name="A") for n in (1, 2)]
    document = go("+B").replace("</properties>", f"</properties>{''.join(cases)}")
    assert [case.message for case in read(document).failing] == ["2"]


@each_row(
    "written",
    [{"root": ""}, {"suite": 'errors="0"'}],
    ids=["go-junit-report 1", "go-junit-report 2"],
)
def test_only_gotestsum_reruns_tests(written: dict) -> None:
    assert told(read(go("-A +B +A", **written))) == (["A"], [], 2)


@each_row("attributes", [{}, {"name": "pytest", "tests": "3"}, {"tests": "2"}])
def test_a_failure_and_a_pass_of_one_name_are_two_tests(attributes: dict) -> None:
    file = read(junit_xml(junit_case(FAILED), junit_case(), junit_case(name="b"), **attributes))
    assert (file.counts.failed, file.counts.passed, file.flaky) == (1, 2, [])


def test_a_later_pass_of_a_failed_test_is_named_and_changes_no_count() -> None:
    # Gradle's test-retry writes both attempts; two tests of one name look the same.
    file = read(junit_xml(junit_case(FAILED), junit_case(name="b"), junit_case()))
    assert file.passed_later == ["tests.test_math::test_sum"]
    assert told(file) == (["test_sum"], [], 2)


def test_a_pass_before_a_failure_is_not_a_retry() -> None:
    assert read(junit_xml(junit_case(), junit_case(FAILED))).passed_later == []


def test_a_file_that_is_cut_off_merges_nothing() -> None:
    document = go("-A +B +A")
    assert told(read(document[: document.rindex("</testsuite>")]))[0] == ["A"]


def test_many_failures_and_deep_names_take_no_time() -> None:
    # Each with each other, or each slash with each other, would not end within a test's limit.
    deep = "a" + "/a" * 40_000
    runs = " ".join(f"-T{n}" for n in range(20_000))
    assert read(go(f"{runs} -{deep} +B +{deep}")).counts.failed == 20_000


def pytest_file(*cases: str, tests: int, **options) -> JUnitFile:
    document = junit_xml(*cases, name="pytest", tests=str(tests), errors="0", failures="0")
    return read(document, **options)


@each_row("is_run_file", [False, True])
def test_attempts_of_pytest_are_one_test(is_run_file: bool) -> None:
    case, other = junit_case(name="a"), junit_case(name="b")
    file = pytest_file(case, other, case, case, tests=2, is_run_file=is_run_file)
    assert told(file) == ([], ["a"], 2)
    assert file.differences == []


def test_a_test_that_fails_in_its_last_attempt_fails_once() -> None:
    document = junit_xml(
        junit_case(), junit_case(), junit_case(FAILED), name="pytest", tests="1", failures="1"
    )
    assert told(read(document)) == (["test_sum"], [], 0)


def test_an_attempt_that_is_skipped_at_last_is_skipped() -> None:
    file = pytest_file(junit_case(), junit_case("<skipped/>"), tests=1)
    assert (file.counts.passed, file.counts.skipped, file.flaky) == (0, 1, [])


def test_tests_of_one_address_stay_apart() -> None:
    # a/b.py::test_c and a.py::b::test_c
    file = pytest_file(junit_case(), junit_case(), tests=2)
    assert told(file) == ([], [], 2)


def test_cases_without_a_name_stay_apart() -> None:
    case = junit_case(classname="", name="")
    assert told(pytest_file(case, case, tests=0)) == ([], [], 2)


def test_attempts_at_an_episode_are_left_to_the_join() -> None:
    address = ("tests.test_math", "test_sum")
    file = pytest_file(junit_case(), junit_case(), tests=1, episode_addresses={address})
    assert (len(file.joined), file.counts.passed, file.flaky) == (2, 2, [])
