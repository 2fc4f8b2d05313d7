"""Files of evaluations: which are collected, and the forms of conversations in them."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.contract.results import Results
from tests.plugin.conftest import Ran

# How evaluations are found and imported: as any test file, by pytest's own import hook.


EVALUATION = """
def test_measured():
    assert 1 == 2
    assert 1 == 1
"""


def recorded(ran, name="test_measured"):
    return [(a.line, a.passed) for a in ran.episodes[name].assertions]


MAIN = """
import pytest, sys

before = list(sys.meta_path)
assert pytest.main(["--episode-report-dir=report", "--pyargs", "one.chat_eval"]) == 0
assert sys.meta_path == before
"""


@pytest.fixture
def packages(suite):
    """Two packages, each with a file of the same name, and helpers that they import."""
    for name in ("one", "two"):
        package = suite.pytester.mkpydir(name)
        (package / "helpers.py").write_text(f"NAME = {name!r}\n")
        (package / "chat_eval.py").write_text(
            "from .helpers import NAME\n"
            f"def test_{name}():\n"
            f"    assert NAME == {name!r}\n"
            "    assert NAME == 'other'\n"
        )
    return suite


def test_fixtures_of_a_conftest_are_there_and_strict(suite):
    suite.pytester.makeconftest(
        """
        import pytest

        @pytest.fixture
        def fine():
            assert 1
            return 3

        @pytest.fixture
        def broken():
            assert 0, "no measurement"
        """
    )
    suite.pytester.makepyfile(
        chat_eval="""
        def test_fine(fine):
            assert fine == 4

        def test_broken(broken): pass
        """
    )
    ran = suite.run("chat_eval.py")
    ran.result.assert_outcomes(passed=1, errors=1)
    assert recorded(ran, "test_fine") == [(2, False)]
    assert ran.episodes["test_broken"].outcome == "error"


def test_what_a_test_imports_from_an_evaluation_is_strict_there(suite):
    """And the evaluation is measured all the same, though the test imported it first."""
    suite.pytester.makepyfile(
        chat_eval="""
        def must_be_one(n):
            assert n == 1

        def test_measured():
            must_be_one(2)
            assert 1 == 1
        """,
        test_a="""
        import pytest
        from chat_eval import must_be_one

        def test_strict(episode):
            must_be_one(1)
            with pytest.raises(AssertionError, match="assert 3 == 1"):
                must_be_one(3)
        """,
    )
    ran = suite.without_evidence().run("--eval")
    ran.result.assert_outcomes(passed=2)
    assert recorded(ran) == [(2, False), (6, True)]
    assert ran.episodes["test_strict"].assertions == ()


def test_import_modes_links_and_names(packages, monkeypatch, tmp_path_factory):
    folder = packages.pytester.path
    for mode in ("prepend", "importlib"):
        ran = packages.run(f"--import-mode={mode}", "--eval")
        ran.result.assert_outcomes(passed=2)
        assert recorded(ran, "test_one") == recorded(ran, "test_two") == [(3, True), (4, False)]
        assert {e.file for e in ran.results.episodes} == {"one/chat_eval.py", "two/chat_eval.py"}
    for name in ("a", "b"):
        (packages.pytester.mkdir(name) / "chat_eval.py").write_text(EVALUATION)
    (folder / "linked").symlink_to(folder / "a", target_is_directory=True)
    ran = packages.run("--import-mode=importlib", "a/chat_eval.py", "b/chat_eval.py")
    ran.result.assert_outcomes(passed=2)
    assert recorded(ran) == [(3, False), (4, True)]
    assert recorded(packages.run("linked/chat_eval.py")) == [(3, False), (4, True)]
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "chat_eval.py"
    elsewhere.write_text(EVALUATION)
    (episode,) = packages.run(str(elsewhere), f"--rootdir={folder}").results.episodes
    assert [(a.file, a.line, a.passed) for a in episode.assertions] == [
        (None, None, False),
        (None, None, True),
    ]
    main = packages.pytester.makepyfile(main=MAIN)
    ran = Ran(packages.pytester.runpython(main), folder / "report")
    assert ran.result.ret == 0, "no finder is left behind"
    assert recorded(ran, "test_one") == [(3, True), (4, False)]
    # From another folder than the root.
    (folder / ".git").mkdir()
    packages.pytester.makeini("[pytest]")
    monkeypatch.chdir(folder / "two")
    ran = packages.run("chat_eval.py", "--rootdir=..", f"--episode-report-dir={folder}/report")
    assert recorded(ran, "test_two") == [(3, True), (4, False)]
    assert ran.episodes["test_two"].file == "two/chat_eval.py"


def test_one_that_a_conftest_imported_is_measured_all_the_same(suite):
    suite.pytester.makepyfile(chat_eval=EVALUATION)
    suite.pytester.makeconftest("import chat_eval")
    assert recorded(suite.run("chat_eval.py")) == [(2, False), (3, True)]


@pytest.mark.parametrize(
    ("name", "head", "options"),
    [
        ("chat_eval", "", ["--assert=plain"]),
        ("chat_eval", "", ["-p", "no:assertion"]),
        ("chat_eval", "'PYTEST_DONT_REWRITE'\n", []),
        ("chat.v2_eval", "", ["--import-mode=importlib"]),
    ],
)
def test_one_that_pytest_does_not_rewrite_cannot_be_measured(suite, name, head, options):
    (suite.pytester.path / f"{name}.py").write_text(head + EVALUATION)
    ran = suite.run_apart(f"{name}.py", *options)
    ran.result.assert_outcomes(errors=1)
    assert ran.result.ret == pytest.ExitCode.INTERRUPTED
    said = "*its asserts cannot be recorded, for pytest did not rewrite them *--eval-strict"
    ran.result.stdout.fnmatch_lines([f"*{name}.py: {said[1:]}"])
    (error,) = ran.session.collection_errors
    assert error.nodeid == f"{name}.py"


@pytest.mark.full
def test_the_optimizer_takes_no_assert(suite, monkeypatch):
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    suite.pytester.makepyfile(chat_eval=EVALUATION)
    assert recorded(suite.run_apart("chat_eval.py")) == [(2, False), (3, True)]


def test_what_lf_leaves_out_is_not_imported(suite):
    for folder, test in (("a", "raise OSError"), ("b", "assert 1")):
        path = suite.pytester.mkdir(folder) / ("chat_eval.py")
        path.write_text(f"def test_it():\n    {test}\n")
    arguments = ["--import-mode=importlib", "-p", "cacheprovider"]
    suite.run("a/chat_eval.py", *arguments).result.assert_outcomes(failed=1)
    (suite.pytester.path / "b/chat_eval.py").write_text("import nowhere\ndef test_it(): pass\n")
    ran = suite.run("--eval", "--lf", *arguments)
    ran.result.assert_outcomes(failed=1)
    assert "INTERNALERROR" not in ran.result.stdout.str()
    assert ran.result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_syntax_error_and_an_assert_at_import_are_collection_errors_with_their_place(suite):
    suite.pytester.makepyfile(
        chat_eval="def test_a():\n    assert (1 ==\n",
        other_eval="""
        def limit(n):
            assert n < 3

        class Settings:
            assert True
            limit(5)
        """,
    )
    ran = suite.run("--eval")
    ran.result.assert_outcomes(errors=2)
    ran.result.stdout.fnmatch_lines(["*chat_eval.py*line 2", "*SyntaxError: '(' was never closed"])
    ran.result.stdout.fnmatch_lines(["other_eval.py:2: in limit", "E   assert 5 < 3"])


HEAD = '''\
# -*- coding: latin-1 -*-
"""Its docstring."""

from __future__ import annotations

def annotated(value: NotThere) -> None: ...

def test_head():
    assert __doc__ == "Its docstring."
    assert annotated.__annotations__ == {"value": "NotThere", "return": "None"}
    assert "\xe4\xf6" == "\xfc", "\xdf"
'''


def test_docstring_future_imports_and_encoding_stay(suite):
    (suite.pytester.path / "head_eval.py").write_bytes(HEAD.encode("latin-1"))
    ran = suite.run("--eval", "-W", "error")
    ran.result.assert_outcomes(passed=1)
    found = ran.episodes["test_head"].assertions
    assert [(a.line, a.passed) for a in found] == [(9, True), (10, True), (11, False)]
    assert found[2].name == '"\xe4\xf6" == "\xfc"'
    assert found[2].reason.splitlines()[0] == "\xdf"


def test_asserts_may_share_lines_with_anything(suite):
    suite.pytester.makeini("[pytest]\nenable_assertion_pass_hook = true")
    suite.pytester.makeconftest(
        """
        def pytest_assertion_pass(item, lineno, orig, expl):
            print(f"passed: {item.name} {lineno} {orig} | {expl}")
        """
    )
    suite.pytester.makepyfile(plain_eval=EVALUATION)
    (suite.pytester.path / "chat_eval.py").write_text(
        "def test_one_line():\n"
        "    x = 1; assert (x ==\n 2); assert (1 ==\n 2), 'm'\n"
        "def test_text():\n"
        '    assert """a\nb""" == "a\\nb"; assert 0\n'
        "def test_then():\n"
        "    assert {1,\n2} == {1}; y = (3,\n 4); assert y == 3\n"
    )
    ran = suite.run("--eval", "-s")
    ran.result.assert_outcomes(passed=4)
    ran.result.stdout.fnmatch_lines(["*passed: test_measured 3 1 == 1 | 1 == 1"])
    assert recorded(ran, "test_one_line") == [(2, False), (3, False)]
    assert recorded(ran, "test_text") == [(6, True), (7, False)]
    assert recorded(ran, "test_then") == [(9, False), (11, False)]


# Each form of assertion: what an evaluation records, and that strictly it is pytest's own.


FILE = Path(__file__).with_name("assertion_forms.txt")
"""All forms: `#= NAME` begins one, and `raises` behind it says that no assertion ends it.

`#: (line, passed, description, beginning of the reason)` is what an evaluation records of it; lines
count from the form's first one.
"""


@dataclass(frozen=True)
class Form:
    """One form of assertion, and what is recorded of it."""

    name: str
    line: int
    """Where it begins in the evaluation."""
    raises: bool
    expected: list[tuple[int, bool, str, str | None]]

    @property
    def outcome(self) -> str:
        """Of the episode: once an assertion failed, no exception makes it an error."""
        if not all(passed for _, passed, _, _ in self.expected):
            return "failed"
        return "error" if self.raises else "passed"


def read_forms() -> tuple[str, list[Form]]:
    """Return the evaluation that holds all forms, and the forms."""
    lines: list[str] = []
    forms: list[Form] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("#= "):
            name, *raises = line.split()[1:]
            forms.append(Form(name, len(lines) + 1, bool(raises), []))
        elif line.startswith("#: "):
            forms[-1].expected.append(ast.literal_eval(line[3:]))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n", forms


TEXT, FORMS = read_forms()
NAMES = [form.name for form in FORMS]


@dataclass
class FormsRun:
    """One run of all forms."""

    folder: Path
    output: str

    @cached_property
    def episodes(self) -> tuple[Episode, ...]:
        path = self.folder / "report/results.json"
        return Results.model_validate_json(path.read_bytes()).episodes

    @cached_property
    def _junit(self) -> ET.ElementTree[ET.Element]:
        return ET.parse(self.folder / "junit.xml")

    def cases(self, form: Form) -> dict[str, list[tuple[str, str, str]]]:
        """What JUnit says of the form's tests: how each ended, its message, its whole text."""
        return {
            case.attrib["name"]: [
                (end.tag, steady(end.attrib.get("message", "")), steady(end.text or ""))
                for end in case
                if end.tag in {"failure", "error", "skipped"}
            ]
            for case in self._junit.iter("testcase")
            if belongs(f"{case.attrib['classname']}.{case.attrib['name']}", form)
        }


def steady(text: str) -> str:
    """Leave out what differs from one process to the next."""
    text = re.sub(r" at 0x[0-9a-f]+| id='\d+'|/same\d+", "", text)
    return "\n".join(line.rstrip() for line in text.split("\n"))


def belongs(name: str, form: Form) -> bool:
    return any(
        part.partition("[")[0] in {f"test_{form.name}", f"Test_{form.name}"}
        for part in name.replace("::", ".").split(".")
    )


def run(folder: Path, *arguments: str) -> FormsRun:
    (folder / ".git").mkdir()
    (folder / "forms_eval.py").write_text(TEXT, encoding="utf-8")
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYTEST_", "CI", "GITHUB_"))
    }
    common = ["-p", "no:randomly", "-p", "no:hypothesispytest", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *common,
            "--junit-xml=junit.xml",
            *arguments,
            "forms_eval.py",
        ],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (folder / "junit.xml").exists(), done.stdout + done.stderr
    return FormsRun(folder, done.stdout)


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> FormsRun:
    return run(tmp_path_factory.mktemp("measured"), "--episode-report-dir=report")


@pytest.fixture(scope="module")
def strict(tmp_path_factory) -> FormsRun:
    return run(tmp_path_factory.mktemp("same"), "--eval-strict")


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> FormsRun:
    return run(tmp_path_factory.mktemp("same"), "-p", "no:ci_agent_eval")


def episodes_of(ran: FormsRun, form: Form) -> list[Episode]:
    return [episode for episode in ran.episodes if belongs(episode.nodeid or "", form)]


def test_there_are_forms_enough():
    assert len(NAMES) == len(set(NAMES)) >= 40


def check_each(check: Callable[[Form], None], forms: Iterable[Form] = FORMS) -> None:
    """Check every form; the failure names each one that is not as expected."""
    problems = []
    for form in forms:
        try:
            check(form)
        except AssertionError as error:
            problems.append(f"{form.name}: {error}")
    assert not problems, "\n".join(problems)


def test_each_is_recorded_once(measured: FormsRun) -> None:
    def check(form: Form) -> None:
        found = episodes_of(measured, form)
        recorded = [
            (a.file, (a.line or 0) - form.line + 1, a.passed, a.name)
            for episode in found
            for a in episode.assertions
        ]
        assert recorded == [
            ("forms_eval.py", line, passed, name) for line, passed, name, _ in form.expected
        ]
        reasons = [a.reason for episode in found for a in episode.assertions]
        for reason, (_, _, _, begins) in zip(reasons, form.expected, strict=True):
            assert reason is None if begins is None else (reason or "").startswith(begins), reason

    check_each(check)


def test_no_assertion_fails_the_test(measured: FormsRun) -> None:
    def check(form: Form) -> None:
        worst = sorted({episode.outcome for episode in episodes_of(measured, form)})[:1]
        assert worst == [form.outcome]
        ends = [end for case in measured.cases(form).values() for end in case]
        assert [tag for tag, _, _ in ends] == (["failure"] if form.raises else [])

    check_each(check)


def test_strictly_it_is_what_pytest_says(strict: FormsRun, plain: FormsRun) -> None:
    def check(form: Form) -> None:
        said = plain.cases(form)
        assert said
        assert said == strict.cases(form)

    # Without the plugin pytest runs no async test.
    check_each(check, (form for form in FORMS if form.name != "async_test"))


def test_the_reason_is_pytest_s_own(measured: FormsRun, plain: FormsRun) -> None:
    def check(form: Form) -> None:
        found = [a for e in episodes_of(measured, form) for a in e.failed_assertions]
        failed = {a.line: a.reason or "" for a in reversed(found)}
        for _, message, text in (end for case in plain.cases(form).values() for end in case):
            (*_, line) = re.findall(r"^forms_eval.py:(\d+): ", text, re.MULTILINE) or [0]
            # An assert that is handled, or is not the reason that the test ended, is not told of.
            if int(line) in failed and message.startswith(("assert", "AssertionError: ")):
                reason = steady(failed[int(line)])
                lines = message.removeprefix("AssertionError: ").splitlines()[:20]
                assert lines == reason.splitlines()[:20]

    check_each(check)
