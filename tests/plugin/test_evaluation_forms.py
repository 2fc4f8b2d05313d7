"""Each form of assertion: what an evaluation records, and that strictly it is pytest's own."""

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
class Ran:
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


def run(folder: Path, *arguments: str) -> Ran:
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
    return Ran(folder, done.stdout)


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Ran:
    return run(tmp_path_factory.mktemp("measured"), "--episode-report-dir=report")


@pytest.fixture(scope="module")
def strict(tmp_path_factory) -> Ran:
    return run(tmp_path_factory.mktemp("same"), "--eval-strict")


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Ran:
    return run(tmp_path_factory.mktemp("same"), "-p", "no:ci_agent_eval")


def episodes_of(ran: Ran, form: Form) -> list[Episode]:
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


def test_each_is_recorded_once(measured: Ran) -> None:
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


def test_no_assertion_fails_the_test(measured: Ran) -> None:
    def check(form: Form) -> None:
        worst = sorted({episode.outcome for episode in episodes_of(measured, form)})[:1]
        assert worst == [form.outcome]
        ends = [end for case in measured.cases(form).values() for end in case]
        assert [tag for tag, _, _ in ends] == (["failure"] if form.raises else [])

    check_each(check)


def test_strictly_it_is_what_pytest_says(strict: Ran, plain: Ran) -> None:
    def check(form: Form) -> None:
        said = plain.cases(form)
        assert said
        assert said == strict.cases(form)

    # Without the plugin pytest runs no async test.
    check_each(check, (form for form in FORMS if form.name != "async_test"))


def test_the_reason_is_pytest_s_own(measured: Ran, plain: Ran) -> None:
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
