"""What files come to, document by document, as a reviewer reads it: counts, failures, differences."""

from __future__ import annotations

import io

from ci_agent_eval.results.junit.reader import read_junit
from tests.builders import junit_case, junit_xml

CASE, FAILED, FLAKY = junit_case(), "<failure message='Failed'/>", "<flakyFailure/><flakyError/>"
PYTEST = {"name": "pytest", "errors": "0", "failures": "0", "skipped": "0"}
SUREFIRE = {"xsi:noNamespaceSchemaLocation": "https://maven.example/surefire-test-report.xsd"}

BODIES = [
    "",
    "<system-out>hello</system-out>",
    "<failure/>",
    "<error/>",
    "<skipped/>",
    "<skipped/><failure/><error/>",
    "<failure/><skipped/>",
    "<failure/><failure/>",
    "<failure/><rerunFailure/>",
    "<rerunFailure/>",
    "<rerunFailure/><rerunError/>",
    "<rerunFailure/><flakyFailure/>",
    "<flakyFailure/>",
    "<flakyError><stackTrace>x</stackTrace></flakyError>",
    "<wrapped><failure/></wrapped>",
    # node:test may fail what is still to do; a skip of another kind excuses no failure.
    "<skipped type='todo' message='true'/><failure/>",
    "<failure/><skipped type='todo'/>",
    "<skipped type='todo'/><error/>",
    "<skipped type='skipped'/><failure/>",
]
STATUSES = [
    {"status": ""},
    {"status": " Passed "},
    {"status": "FAILED"},
    {"status": "notrun"},
    {"status": "Not_Run"},
    {"status": "disabled"},
    {"result": "error"},
    {"status": "run", "result": "skipped"},
    {"status": "run", "result": "completed"},
    {"status": "run", "result": "timeout"},
    {"status": "notrun", "result": "suppressed"},
    {"status": "skipped", "result": "failed"},
    *({"status": word} for word in ["run", "completed", "passed", "PASS", "success", "successful", "ok", "finished"]),
    *({"status": word} for word in ["timeout", "broken", "aborted", "inconclusive", "crashed", "unknown", "blocked", "-"]),
]  # fmt: skip
SKIPS = [
    # CTest skips what it could not run.
    ('<skipped message="Unable to find executable"/>', {"status": "notrun"}),
    ('<skipped message="Fixture dependency failed"/>', {"status": "notrun"}),
    ('<skipped message="SKIP_RETURN_CODE=77"/>', {"status": "notrun"}),
    ('<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>', {"status": "notrun"}),
    ('<skipped message="Disabled"/>', {"status": "disabled"}),
    # GoogleTest
    ('<skipped message="g.cc:3"/>', {"status": "notrun", "result": "suppressed"}),
    # Catch2
    ('<skipped message="TEST_CASE tagged with !mayfail"/><failure message="1 == 2"/>', {}),
    ("<system-out>x</system-out>", {"status": "broken"}),
    ("<rerunFailure/>", {"status": "passed"}),
]


def suite(text, **attributes):
    written = "".join(f' {name}="{value}"' for name, value in attributes.items())
    return f"<testsuite{written}>{text}</testsuite>"


def suites(text, **attributes):
    return suite(text, **attributes).replace("testsuite", "testsuites").replace("suitess", "suites")


def surefire(*cases, **totals):
    return junit_xml(*cases, **SUREFIRE, **totals)


WHOLE = junit_xml(CASE + "\n", junit_case("<failure/>") + "\n", CASE)
INNER = suite(f"<error/>{junit_case('<failure/>')}")
TOLD = '<failure message="assert 1 == 2">Traceback\n  line</failure>'
BROKEN = [f'<{tag} message="fixture died">trace</{tag}>' for tag in ("error", "failure")]
LAID_OUT = {
    "what broke a suite": suite(f"{CASE}{BROKEN[0]}{CASE}", name="desk", tests="2"),
    "a suite that failed": suite(f"{CASE}{BROKEN[1]}{CASE}", name="desk", tests="2"),
    "a suite's own result, declared": suite(f"<failure/>{CASE}", tests="1", errors="1"),
    "a suite's own result as a failure": suite(f"<failure/>{CASE}", tests="1", errors="0", failures="1"),
    "a suite's own result, not declared": suite(f"<failure/>{CASE}", tests="1", errors="0"),
    "a result of an inner suite": suites(f"{INNER}{CASE}", errors="1", failures="1"),
    "what a reader needs": junit_xml(junit_case(TOLD, file="tests/test_math.py", line="7")),
    "lines of pytest count from zero": junit_xml(junit_case("<failure/>", file="a.py", line="0"), name="pytest"),
    "lines of others from one": junit_xml(junit_case("<failure/>", file="a.py", line="0"), name="mocha"),
    "nested suites": suites(CASE + suite(CASE + suite(suite(CASE)) + CASE)),
    "a suite as the root": "<testsuite><testcase/><testcase><error/></testcase></testsuite>",
    "namespaces": '<j:testsuites xmlns:j="urn:x"><j:testsuite><j:testcase><j:failure/></j:testcase></j:testsuite></j:testsuites>',
    "cut off": WHOLE[: WHOLE.rindex("<testcase") + 20],
    "empty": "",
    "no XML": "hello",
    "another root": "<html><testcase/></html>",
    "an unknown entity": "<testsuite>&nbsp;</testsuite>",
    "two roots": "<testsuite></testsuite><testsuite/>",
    "too deep": "<testsuite>" * 300,
    "an external DTD": '<!DOCTYPE t SYSTEM "file:///nowhere/junit.dtd"><testsuite><testcase/></testsuite>',
    "a simple entity": '<!DOCTYPE testsuite [<!ENTITY who "world">]><testsuite><testcase name="&who;"><failure>&lt;&who;&gt;</failure></testcase></testsuite>',
}  # fmt: skip
DECLARED = {
    "a failure that is not declared": junit_xml(junit_case("<failure/>"), name="s", tests="1", failures="0"),
    "lost cases": junit_xml(CASE, tests="6"),
    "a lost failure": junit_xml(CASE, failures="1"),
    "a lost error": junit_xml(CASE, errors="1"),
    "no numbers": junit_xml(CASE, tests="1", failures="0", errors="", skipped="many"),
    "disabled, not skipped": junit_xml(junit_case(status="disabled"), tests="1", skipped="0", disabled="1"),
    "disabled and skipped": junit_xml(junit_case("<skipped/>"), junit_case("<skipped/>"), skipped="1", disabled="1"),
    "failed and then errored": junit_xml(junit_case("<failure/><error/>"), tests="1", failures="1", errors="1"),
    "totals with inner suites": suite(suite("<testcase/>", tests="1") + "<testcase/>", tests="2"),
    "totals without inner suites": suite(suite("<testcase/>", tests="1") + "<testcase/>", tests="1"),
    "five harmless differences and a loss": suites(suite(CASE, tests="0") * 5 + suite("", name="lost", tests="1")),
    "a loss that another suite does not balance": suites(suite("", tests="1") + suite("<testcase/>", tests="0")),
    # pytest counts subtests
    "pytest lost a failure": junit_xml(CASE, **{**PYTEST, "tests": "3", "failures": "1"}),
    "pytest lost an error": junit_xml(junit_case("<failure/>"), **{**PYTEST, "tests": "5", "errors": "1"}),
    "pytest lost all": junit_xml(**PYTEST, tests="3"),
    "pytest says not how many failed": junit_xml(CASE, name="pytest", tests="3"),
    "nose counts no subtests": junit_xml(CASE, **{**PYTEST, "tests": "3", "name": "nose"}),
    # Surefire counts attempts, or tests
    "Surefire's tests": surefire(junit_case(FLAKY), tests="1", failures="0", errors="0"),
    "Surefire's attempts": surefire(junit_case(FLAKY), tests="3", failures="1", errors="1"),
    "Surefire lost a test": surefire(CASE, tests="2", failures="0", errors="0", skipped="0"),
    "Surefire lost an attempt": surefire(junit_case(FLAKY), tests="4", failures="1", errors="1"),
    "Surefire lost a failed attempt": surefire(junit_case(FLAKY), tests="3", failures="2", errors="1"),
    "TestNG lost a test beside a skip": surefire(CASE, tests="3", failures="0", errors="0", skipped="1"),
    "TestNG lost a failure beside a skip": surefire(CASE, tests="2", failures="1", errors="0", skipped="1"),
    "attempts of another": junit_xml(junit_case(FLAKY), tests="3", failures="0", errors="0"),
    # Skips without a case
    "a skip without a case": suites(suite("<testcase/>", tests="2", failures="0"), tests="2", failures="0", skipped="1"),
    "skips beside a failure": suite("<testcase><failure/></testcase>", tests="3", failures="1", skipped="2"),
    "one more is missing": suites(suite("<testcase/>", tests="3"), tests="3", failures="0", skipped="1"),
    "two suites miss one": suites(suite("<testcase/>", tests="2") * 2, tests="3", failures="0", skipped="1"),
    "a failure is missing, too": suite("<testcase/>", tests="2", failures="1", skipped="1"),
    "no number of failures": suite("<testcase/>", tests="2", skipped="1"),
    "no case at all": suite("", tests="1", failures="0", skipped="1"),
    # node:test counts beside its cases
    "node's failures without a case": suites(f"{CASE}<!-- fail 1 --><!-- cancelled 2 -->"),
    "node without failures": suites(f"{CASE}<!-- fail 0 --><!-- cancelled 0 -->"),
    "node's failures with a case": suites(f"{junit_case('<failure/>')}<!-- fail 2 -->"),
    "a comment of a suite": suites(suite(f"{CASE}<!-- fail 1 -->")),
    "a comment of a test": suites(f"{junit_case('<!-- fail 1 -->')}<!-- fail 1 of 2 -->"),
}  # fmt: skip


def go(*packages, root='errors="0"', inner=""):
    """A file of gotestsum, from packages such as "-A -A +A +B": failed and passed runs."""
    bodies = {"-": FAILED, "+": "", "/": "<skipped/>"}
    version = '<properties><property name="go.version" value="go1.26.8"/></properties>'
    found = ""
    for number, runs in enumerate(packages):
        cases = [junit_case(bodies[run[0]], classname="p", name=run[1:]) for run in runs.split()]
        found += f'<testsuite name="p{number}" {inner}>{version}{"".join(cases)}</testsuite>'
    return f"<testsuites {root}>{found}</testsuites>"


RERUNS = [
    ["-A +B +A"],
    ["-A -A +B +A"],
    ["-A -A -A +B"],
    # The one that proves a rerun may be of another package.
    ["-A +A", "+B"],
    # A rerun of a subtest is one of its parent.
    ["-T/a -T +B +T/a +T"],
    ["-T/a -T/b -T +B +T/a +T/b +T +T"],
    ["-T/a -T -T/a -T +B +T/a +T"],
    # A parent that failed itself is rerun with all of its subtests.
    ["-T +B +T/a +T/a +T"],
    # Of two that failed only one passed at last.
    ["-A -T/a -T -T/a -T +B +A"],
    # The subtests a and b fail. In the rerun of b, and again alone, the parent itself fails.
    ["-T/a -T/b -T -T -T +B +T/a +T +T/b"],
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
]
LAST = "".join(junit_case(f"<failure message='{n}'/>", name="A") for n in (1, 2))
A, B = junit_case(name="a"), junit_case(name="b")
BARE = junit_case(classname="", name="")
RETRIED = {
    "the last failure is kept": go("+B").replace("</properties>", f"</properties>{LAST}"),
    "go-junit-report 1": go("-A +B +A", root=""),
    "go-junit-report 2": go("-A +B +A", inner='errors="0"'),
    "gotestsum's file that is cut off": go("-A +B +A")[: go("-A +B +A").rindex("</testsuite>")],
    "a failure and a pass of one name": junit_xml(junit_case(FAILED), CASE, B),
    "a failure and a pass in a file of pytest": junit_xml(junit_case(FAILED), CASE, B, name="pytest", tests="3"),
    "a failure and a pass of two tests": junit_xml(junit_case(FAILED), CASE, B, tests="2"),
    # Gradle's test-retry writes both attempts; two tests of one name look the same.
    "a later pass": junit_xml(junit_case(FAILED), B, CASE),
    "a pass before a failure": junit_xml(CASE, junit_case(FAILED)),
    "attempts of pytest": junit_xml(A, B, A, A, **{**PYTEST, "tests": "2"}),
    "pytest's last attempt fails": junit_xml(CASE, CASE, junit_case(FAILED), name="pytest", tests="1", failures="1"),
    "pytest's last attempt is skipped": junit_xml(CASE, junit_case("<skipped/>"), **{**PYTEST, "tests": "1"}),
    # a/b.py::test_c and a.py::b::test_c
    "two tests of one address": junit_xml(CASE, CASE, **{**PYTEST, "tests": "2"}),
    "cases without a name": junit_xml(BARE, BARE, **{**PYTEST, "tests": "0"}),
}  # fmt: skip

DOCUMENTS = {
    **{body or "(nothing)": junit_xml(junit_case(body)) for body in BODIES},
    **{str(fields): junit_xml(junit_case(**fields)) for fields in STATUSES},
    **{f"{body} {fields}": junit_xml(junit_case(body, **fields)) for body, fields in SKIPS},
    **LAID_OUT,
    **DECLARED,
    **{f"gotestsum {' | '.join(packages)}": go(*packages) for packages in RERUNS},
    **RETRIED,
}


def read(document, **options):
    return read_junit(io.BytesIO(document.encode()), **options)


def describe(name, document):
    file = read(document)
    counts = file.counts
    assert counts.failed + counts.error == len(file.failing), name
    tally = f"{counts.passed} passed, {counts.failed} failed, {counts.error} errored"
    lines = [f"{name}: {tally}, {counts.skipped} skipped"]
    for case in file.failing:
        lines.append(f"  {case.outcome} {case.title} at {case.file}:{case.line}")
        lines += [f"    {text!r}" for text in (case.message, case.detail) if text]
    lines += [f"  flaky {case.title}" for case in file.flaky]
    lines += [f"  passed later: {title}" for title in file.passed_later]
    for found in file.differences:
        lines.append(f"  {'LOST' if found.has_lost_results else 'differs'}: {found.text}")
    if file.end.problem:
        lines.append(f"  line {file.end.line}: {file.end.problem}")
    return "\n".join(lines)


def test_the_files_come_to_what_the_golden_one_says(golden):
    text = "\n".join(describe(name, document) for name, document in DOCUMENTS.items())
    golden("junit/files.txt", f"{text}\n")


def test_many_failures_and_deep_names_take_no_time():
    # Each with each other, or each slash with each other, would not end within a test's limit.
    deep = "a" + "/a" * 40_000
    runs = " ".join(f"-T{n}" for n in range(20_000))
    assert read(go(f"{runs} -{deep} +B +{deep}")).counts.failed == 20_000


def test_attempts_in_the_file_of_a_run_are_one_test():
    file = read(junit_xml(A, B, A, A, **PYTEST, tests="2"), is_run_file=True)
    assert (file.counts.passed, [case.name for case in file.flaky]) == (2, ["a"])
    assert file.differences == []


def test_attempts_at_an_episode_are_left_to_the_join():
    address = ("tests.test_math", "test_sum")
    file = read(junit_xml(CASE, CASE, **PYTEST, tests="1"), episode_addresses={address})
    assert (len(file.joined), file.counts.passed, file.flaky) == (2, 2, [])
