from __future__ import annotations

import io
import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from ci_agent_eval.results.junit.failure_messages import find_message
from ci_agent_eval.results.junit.reader import JUnitFile, read_junit
from tests.builders import junit_case, junit_xml
from tests.tables import each_row


def read(document: str | bytes, **kwargs) -> JUnitFile:
    data = document.encode() if isinstance(document, str) else document
    return read_junit(io.BytesIO(data), **kwargs)


def tally(file: JUnitFile) -> tuple[int, int, int, int]:
    counts = file.counts
    return counts.passed, counts.failed, counts.error, counts.skipped


def flaky(file: JUnitFile) -> list[str]:
    return [case.title for case in file.flaky]


def outcomes(*bodies: str) -> tuple[int, int, int, int]:
    return tally(read(junit_xml(*(junit_case(body) for body in bodies))))


@each_row(
    ("body", "expected"),
    [
        ("", (1, 0, 0, 0)),
        ("<system-out>hello</system-out>", (1, 0, 0, 0)),
        ("<failure/>", (0, 1, 0, 0)),
        ("<error/>", (0, 0, 1, 0)),
        ("<skipped/>", (0, 0, 0, 1)),
        ("<skipped/><failure/><error/>", (0, 0, 1, 0)),
        ("<failure/><skipped/>", (0, 1, 0, 0)),
        ("<failure/><failure/>", (0, 1, 0, 0)),
        ("<failure/><rerunFailure/>", (0, 1, 0, 0)),
        ("<rerunFailure/>", (0, 1, 0, 0)),
        ("<rerunFailure/><rerunError/>", (0, 0, 1, 0)),
        ("<rerunFailure/><flakyFailure/>", (1, 0, 0, 0)),
        ("<flakyFailure/>", (1, 0, 0, 0)),
        ("<flakyError><stackTrace>x</stackTrace></flakyError>", (1, 0, 0, 0)),
        ("<wrapped><failure/></wrapped>", (0, 1, 0, 0)),
        # node:test may fail what is still to do; a skip of another kind excuses no failure.
        ("<skipped type='todo' message='true'/><failure/>", (0, 0, 0, 1)),
        ("<failure/><skipped type='todo'/>", (0, 0, 0, 1)),
        ("<skipped type='todo'/><error/>", (0, 0, 1, 0)),
        ("<skipped type='skipped'/><failure/>", (0, 1, 0, 0)),
    ],
)
def test_a_case_counts_once_by_its_worst_result(body: str, expected: tuple) -> None:
    assert outcomes(body) == expected


@each_row(
    ("attributes", "expected"),
    [
        ({"status": "run"}, (1, 0, 0, 0)),
        ({"status": "notrun"}, (0, 0, 0, 1)),
        ({"status": "disabled"}, (0, 0, 0, 1)),
        ({"status": "run", "result": "skipped"}, (0, 0, 0, 1)),
        ({"status": "FAILED"}, (0, 1, 0, 0)),
        ({"result": "error"}, (0, 0, 1, 0)),
        ({"status": ""}, (1, 0, 0, 0)),
        ({"status": " Passed "}, (1, 0, 0, 0)),
        ({"status": "run", "result": "completed"}, (1, 0, 0, 0)),
        ({"status": "notrun", "result": "suppressed"}, (0, 0, 0, 1)),
        ({"status": "Not_Run"}, (0, 0, 0, 1)),
        ({"status": "skipped", "result": "failed"}, (0, 1, 0, 0)),
        ({"status": "run", "result": "timeout"}, (0, 0, 1, 0)),
    ],
)
def test_a_case_without_results_is_what_its_status_says(attributes: dict, expected: tuple) -> None:
    assert tally(read(junit_xml(junit_case(**attributes)))) == expected


PASSING = ["run", "completed", "passed", "pass", "success", "successful", "ok", "finished"]


@each_row("word", [*PASSING, *(word.upper() for word in PASSING)])
def test_words_that_say_success_pass(word: str) -> None:
    assert tally(read(junit_xml(junit_case(status=word)))) == (1, 0, 0, 0)


@each_row("body", ["", "<system-out>x</system-out>"])
@each_row(
    "word", ["timeout", "broken", "aborted", "inconclusive", "crashed", "unknown", "blocked", "-"]
)
def test_any_other_word_is_an_error_that_says_it(word: str, body: str) -> None:
    file = read(junit_xml(junit_case(body, status=word)))
    assert tally(file) == (0, 0, 1, 0)
    assert [case.message for case in file.failing] == [
        f"its status is {word!r}, which is no success"
    ]


def test_reruns_of_a_case_that_says_it_passed_make_it_flaky() -> None:
    file = read(junit_xml(junit_case("<rerunFailure/>", status="passed")))
    assert (tally(file), flaky(file)) == ((1, 0, 0, 0), ["tests.test_math::test_sum"])


@each_row("tag", ["error", "failure"])
def test_what_broke_a_suite_itself_is_an_errored_case(tag: str) -> None:
    broken = f'<{tag} message="fixture died">trace</{tag}>'
    document = f'<testsuite name="desk" tests="1">{junit_case()}{broken}{junit_case()}</testsuite>'
    file = read(document.replace('tests="1"', 'tests="2"'))
    assert tally(file) == (2, 0, 1, 0)
    (kept,) = file.failing
    assert (kept.title, kept.outcome) == (f"desk::(suite {tag})", "error")
    assert (kept.message, kept.detail) == ("fixture died", "trace")
    assert file.differences == []


@each_row("totals", ['errors="1"', 'errors="0" failures="1"', 'errors="0"'])
def test_a_suite_declares_its_own_result_as_it_likes(totals: str) -> None:
    assert (
        read(f'<testsuite tests="1" {totals}><failure/>{junit_case()}</testsuite>').differences
        == []
    )


def test_an_empty_element_beside_the_cases_and_in_an_inner_suite_counts_too() -> None:
    inner = f"<testsuite><error/>{junit_case('<failure/>')}</testsuite>"
    file = read(f'<testsuites errors="1" failures="1">{inner}{junit_case()}</testsuites>')
    assert tally(file) == (1, 1, 1, 0)
    assert file.differences == []


def test_a_failing_case_keeps_what_a_reader_needs() -> None:
    failure = '<failure message="assert 1 == 2">Traceback\n  line</failure>'
    case = junit_case(failure, file="tests/test_math.py", line="7")
    (kept,) = read(junit_xml(case)).failing
    assert (kept.title, kept.outcome) == ("tests.test_math::test_sum", "failed")
    assert (kept.message, kept.detail) == ("assert 1 == 2", "Traceback\n  line")
    assert (kept.file, kept.line) == ("tests/test_math.py", 7)


def test_lines_of_pytest_count_from_one_like_all_others() -> None:
    case = junit_case("<failure/>", file="a.py", line="0")
    assert read(junit_xml(case, name="pytest")).failing[0].line == 1
    assert read(junit_xml(case, name="mocha")).failing[0].line is None


def test_suites_may_nest_and_cases_may_stand_anywhere() -> None:
    case = junit_case()
    document = (
        f"<testsuites>{case}<testsuite>{case}<testsuite><testsuite>{case}</testsuite></testsuite>"
        f"{case}</testsuite></testsuites>"
    )
    assert tally(read(document)) == (4, 0, 0, 0)


def test_a_suite_may_be_the_root_and_a_case_bare() -> None:
    assert tally(read("<testsuite><testcase/><testcase><error/></testcase></testsuite>")) == (
        1,
        0,
        1,
        0,
    )


def test_namespaces_do_not_hide_cases() -> None:
    document = (
        '<j:testsuites xmlns:j="urn:x"><j:testsuite><j:testcase><j:failure/></j:testcase>'
        "</j:testsuite></j:testsuites>"
    )
    assert tally(read(document)) == (0, 1, 0, 0)


def test_a_truncated_file_counts_what_came_before_and_names_the_line() -> None:
    document = junit_xml(junit_case() + "\n", junit_case("<failure/>") + "\n", junit_case())
    file = read(document[: document.rindex("<testcase") + 20])
    assert tally(file) == (1, 1, 0, 0)
    assert (file.end.problem, file.end.line) == ("it is cut off", 4)


@each_row(
    ("document", "problem"),
    [
        ("", "it is empty"),
        ("hello", "not well-formed"),
        ("<html><testcase/></html>", "its root element 'html'"),
        ("<testsuite>&nbsp;</testsuite>", "undefined entity"),
        ("<testsuite></testsuite><testsuite/>", "junk after document element"),
        ("<testsuite>" * 300, "nested more than 200 deep"),
    ],
)
def test_what_is_no_junit_file_is_named(document: str, problem: str) -> None:
    assert problem in (read(document).end.problem or "")


def test_simple_entities_work() -> None:
    document = (
        '<!DOCTYPE testsuite [<!ENTITY who "world">]>'
        '<testsuite><testcase name="&who;"><failure>&lt;&who;&gt;</failure></testcase></testsuite>'
    )
    (kept,) = read(document).failing
    assert (kept.name, kept.detail) == ("world", "<world>")


@each_row(
    "declaration",
    [
        '<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;">',
        f'<!ENTITY a "{"ha" * 1000}">',
        "".join(f'<!ENTITY a{n} "x">' for n in range(200)),
        '<!ENTITY a SYSTEM "file:///etc/passwd">',
        '<!ENTITY % a SYSTEM "http://127.0.0.1:9/x.dtd"> %a;',
        '<!ENTITY % a "ha">',
    ],
    ids=["expanding", "long", "many", "file", "network", "parameter"],
)
def test_entities_that_expand_or_reach_outside_are_refused(declaration: str) -> None:
    # One that was expanded would not come to an end within the time limit of every test.
    file = read(f"<!DOCTYPE t [{declaration}]><testsuite><testcase name='&a;'/></testsuite>")
    assert "it declares" in (file.end.problem or "")


def test_an_external_dtd_is_not_fetched() -> None:
    document = '<!DOCTYPE t SYSTEM "file:///nowhere/junit.dtd"><testsuite><testcase/></testsuite>'
    assert tally(read(document)) == (1, 0, 0, 0)


def test_huge_texts_are_cut_and_captured_output_is_not_kept() -> None:
    line = "x" * 99 + "\n"
    body = f"<system-out>{line * 120_000}</system-out><failure>{line * 120_000}</failure>"
    document = io.BytesIO(junit_xml(junit_case(body)).encode())
    tracemalloc.start()
    file = read_junit(document)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "cut after 8000 characters" in (file.failing[0].detail or "")
    assert peak < 3_000_000  # each of the texts has 12,000,000 characters


def test_a_long_token_is_read_in_ever_larger_chunks_so_that_time_stays_linear() -> None:
    # Older expat scans an unfinished token again with every chunk it is given.
    sizes: list[int] = []

    class Counting(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            sizes.append(size or 0)
            return super().read(size)

    document = Counting(b'<testsuite name="' + b"y" * 20_000_000 + b'"><testcase/></testsuite>')
    assert tally(read_junit(document)) == (1, 0, 0, 0)
    assert len(sizes) < 20


def differences(document: str) -> list[tuple[str, bool]]:
    return [(found.text, found.has_lost_results) for found in read(document).differences]


def test_declared_totals_that_hide_a_failure_are_told() -> None:
    document = junit_xml(junit_case("<failure/>"), name="s", tests="1", failures="0")
    assert differences(document) == [("suite 's' declares failures 0 (found 1)", False)]


@each_row("declared", [{"tests": "6"}, {"failures": "1"}, {"errors": "1"}])
def test_declared_cases_and_failures_that_are_not_there_are_lost(declared: dict) -> None:
    ((_, loses),) = differences(junit_xml(junit_case(), **declared))
    assert loses


@each_row(
    "document",
    [
        junit_xml(junit_case(), tests="1", failures="0", errors="", skipped="many"),
        junit_xml(junit_case(status="disabled"), tests="1", skipped="0", disabled="1"),
        junit_xml(junit_case("<skipped/>"), junit_case("<skipped/>"), skipped="1", disabled="1"),
        # A case that failed and then errored is declared under both by some.
        junit_xml(junit_case("<failure/><error/>"), tests="1", failures="1", errors="1"),
        # Totals with and without those of inner suites.
        '<testsuite tests="2"><testsuite tests="1"><testcase/></testsuite><testcase/></testsuite>',
        '<testsuite tests="1"><testsuite tests="1"><testcase/></testsuite><testcase/></testsuite>',
    ],
)
def test_the_ways_of_declaring_that_producers_have_are_no_difference(document: str) -> None:
    assert differences(document) == []


PYTEST = {"name": "pytest", "errors": "0", "failures": "0", "skipped": "0"}
SUREFIRE = {"xsi:noNamespaceSchemaLocation": "https://maven.example/surefire-test-report.xsd"}
FLAKY = "<flakyFailure/><flakyError/>"


def surefire(*cases: str, **totals: str) -> str:
    return junit_xml(*cases, **SUREFIRE, **totals)


@each_row(
    "document",
    [
        # A failure, an error, or all cases are missing, too.
        junit_xml(junit_case(), **{**PYTEST, "tests": "3", "failures": "1"}),
        junit_xml(junit_case("<failure/>"), **{**PYTEST, "tests": "5", "errors": "1"}),
        junit_xml(**PYTEST, tests="3"),
        # It does not say how many failed.
        junit_xml(junit_case(), name="pytest", tests="3"),
        # Who counts subtests is not known.
        junit_xml(junit_case(), **{**PYTEST, "tests": "3", "name": "nose"}),
        surefire(junit_case(), tests="2", failures="0", errors="0", skipped="0"),
        surefire(junit_case(FLAKY), tests="4", failures="1", errors="1"),
        surefire(junit_case(FLAKY), tests="3", failures="2", errors="1"),
        # A retried attempt of TestNG is declared as skipped, a lost test is not.
        surefire(junit_case(), tests="3", failures="0", errors="0", skipped="1"),
        surefire(junit_case(), tests="2", failures="1", errors="0", skipped="1"),
        # Others declare a test with retries once.
        junit_xml(junit_case(FLAKY), tests="3", failures="0", errors="0"),
    ],
)
def test_what_a_known_producer_does_not_explain_is_lost(document: str) -> None:
    assert [loses for _, loses in differences(document)] == [True]


@each_row("totals", [("1", "0", "0"), ("3", "1", "1")])
def test_surefire_declares_a_retried_test_once_or_each_attempt(totals: tuple) -> None:
    tests, failures, errors = totals
    document = surefire(junit_case(FLAKY), tests=tests, failures=failures, errors=errors)
    assert differences(document) == []


UNWRITTEN_SKIPS = [
    # (document, whether each difference loses results)
    (
        '<testsuites tests="2" failures="0" skipped="1"><testsuite tests="2" failures="0"><testcase/></testsuite></testsuites>',
        [False, False],
    ),
    (
        '<testsuite tests="3" failures="1" skipped="2"><testcase><failure/></testcase></testsuite>',
        [False],
    ),
    # One test more is missing than was skipped.
    (
        '<testsuites tests="3" failures="0" skipped="1"><testsuite tests="3"><testcase/></testsuite></testsuites>',
        [True, True],
    ),
    # Two suites miss one each, and one was skipped.
    (
        '<testsuites tests="3" failures="0" skipped="1"><testsuite tests="2"><testcase/></testsuite><testsuite tests="2"><testcase/></testsuite></testsuites>',
        [True, True, False],
    ),
    # A declared failure is missing, too.
    ('<testsuite tests="2" failures="1" skipped="1"><testcase/></testsuite>', [True]),
    # Without a number of failures nothing is proven.
    ('<testsuite tests="2" skipped="1"><testcase/></testsuite>', [True]),
    # No case at all.
    ('<testsuite tests="1" failures="0" skipped="1"/>', [True]),
]


@each_row(("document", "losses"), UNWRITTEN_SKIPS)
def test_declared_skips_without_a_case_are_explained_only_if_nothing_else_is_missing(
    document: str, losses: list[bool]
) -> None:
    assert [loses for _, loses in differences(document)] == losses


@each_row(
    ("body", "attributes", "expected"),
    [
        ('<skipped message="Unable to find executable"/>', {"status": "notrun"}, "error"),
        ('<skipped message="Fixture dependency failed"/>', {"status": "notrun"}, "error"),
        ('<skipped message="SKIP_RETURN_CODE=77"/>', {"status": "notrun"}, "skipped"),
        ('<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>', {"status": "notrun"}, "skipped"),
        ('<skipped message="Disabled"/>', {"status": "disabled"}, "skipped"),
        # GoogleTest
        ('<skipped message="g.cc:3"/>', {"status": "notrun", "result": "suppressed"}, "skipped"),
    ],
)
def test_a_test_that_ctest_could_not_run_is_an_error(body, attributes, expected) -> None:
    counts = read(junit_xml(junit_case(body, **attributes))).counts
    assert getattr(counts, expected) == 1


def test_a_failure_that_catch2_allows_does_not_fail() -> None:
    body = '<skipped message="TEST_CASE tagged with !mayfail"/><failure message="1 == 2"/>'
    file = read(junit_xml(junit_case(body), tests="1", failures="0", errors="0"))
    assert (tally(file), file.differences) == ((0, 0, 0, 1), [])


MESSAGES = [
    # (name, message, text, what a person would quote)
    (
        "Fails",
        "g.cc:3\nExpected equality of these values:\n  1 + 1\n    Which is: 2\n  3",
        None,
        "Expected equality of these values: 1 + 1 Which is: 2 3",
    ),
    (
        "src/a.test.ts",
        "Cannot find module './x' imported from /w/src/a.test.ts",
        None,
        "Cannot find module './x' imported from /w/src/a.test.ts",
    ),
    ("NaN", "expected 3 to be NaN", "AssertionError: x", "expected 3 to be NaN"),
    (
        "test_a",
        "test failure",
        'Traceback (most recent call last):\n  File "t.py", line 4\n    x\nAssertionError: 1 != 2',
        "AssertionError: 1 != 2",
    ),
    (
        "test_a",
        None,
        "Traceback (most recent call last):\n  a\nKeyError: 1\n\nDuring handling …:\n\nTraceback (most recent call last):\n  b\nValueError: last",
        "ValueError: last",
    ),
    (
        "TestFail",
        "Failed",
        "=== RUN   TestFail\n    a_test.go:5: connecting\n    a_test.go:6: Add = -1, want 3\n--- FAIL: TestFail (0.00s)\n",
        "Add = -1, want 3",
    ),
    (
        "a.test.js",
        None,
        "  \u25cf Test suite failed to run\n\n    Cannot find module 'x'\n",
        "Cannot find module 'x'",
    ),
    ("pays", None, "(in test file pay.bats, line 3)\n  `false' failed", "`false' failed"),
    ("red", "\ufffd[31mred\ufffd[39m is not blue", None, "red is not blue"),
    ("pays", "None", "Failing step: Then it pays", "Failing step: Then it pays"),
    ("pays", "cart.spec.ts:3:1 \u203a pays", "Error: no", "Error: no"),
    ("pays", "failed", None, "failed"),
]


@each_row(("name", "message", "text", "expected"), MESSAGES)
def test_the_message_is_the_line_that_a_person_would_quote(name, message, text, expected) -> None:
    assert find_message(name, message, text) == expected


def test_harmless_differences_hide_no_loss() -> None:
    harmless = f'<testsuite tests="0">{junit_case()}</testsuite>' * 5
    document = f'<testsuites>{harmless}<testsuite name="lost" tests="1"/></testsuites>'
    assert ("suite 'lost' declares tests 1 (found 0)", True) in differences(document)


@each_row(
    ("body", "expected"),
    [
        (f"{junit_case()}<!-- fail 1 --><!-- cancelled 2 -->", ["3 failed tests"]),
        (f"{junit_case()}<!-- fail 0 --><!-- cancelled 0 -->", []),
        # A failed case is reason enough; what else failed shows once it passes.
        (f"{junit_case('<failure/>')}<!-- fail 2 -->", []),
        # Only node's own totals count, not what a test says.
        (f"<testsuite>{junit_case()}<!-- fail 1 --></testsuite>", []),
        (f"{junit_case('<!-- fail 1 -->')}<!-- fail 1 of 2 -->", []),
    ],
)
def test_failures_that_node_counts_without_a_case_are_lost(body: str, expected: list) -> None:
    told = [text for text, loses in differences(f"<testsuites>{body}</testsuites>") if loses]
    assert told == [f"node:test counts {text} and wrote no failed case" for text in expected]


def test_a_lost_case_is_not_balanced_by_another_suite() -> None:
    document = (
        '<testsuites><testsuite tests="1"/><testsuite tests="0"><testcase/></testsuite>'
        "</testsuites>"
    )
    assert [loses for _, loses in differences(document)] == [True, False]


markup = st.sampled_from(
    ["<testsuites>", "</testsuites>", "<testsuite tests='2'>", "</testsuite>", "<testcase>",
     "<testcase status='failed'/>", "</testcase>", "<failure>", "</failure>", "<skipped/>", "x",
     "<property name='agent_eval.nodeid' value='x'/>", "<flakyError/>", "&amp;", "\x00", "<a:b/>"]
)  # fmt: skip


@given(st.one_of(st.binary(max_size=300), st.lists(markup).map(lambda m: "".join(m).encode())))
def test_no_bytes_raise(data: bytes) -> None:
    file = read(b"<testsuites>" + data)
    assert file.counts.cases >= len(file.failing)
