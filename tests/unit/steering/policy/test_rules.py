"""The optional rules, all off by default; and what a finding says."""

from __future__ import annotations

import posixpath
from pathlib import Path

from ci_agent_eval.steering.policy.detection import detect_in_text
from ci_agent_eval.steering.policy.model import DetectionResult, PytestProject, Rules
from tests.tables import each_row, read_sections
from tests.unit.steering.policy.test_cases import answer, detect_in_argv

ALIASES = Rules(aliases=("make test", "tox", "nox", "npm test", "just check", "./scripts/test.sh"))


def of(command: str, rules: Rules) -> str:
    return answer(detect_in_text(command, rules=rules))


def read_rule_cases(name: str) -> list[tuple[str, str]]:
    """Return the answers and commands of a section."""
    lines = read_sections(Path(__file__).parent / "rule_cases.txt")[name].splitlines()
    return [tuple(line.split(" ", 1)) for line in lines if not line.startswith("#")]


def test_a_bare_directory_is_full_where_the_rule_is_on():
    cases = read_rule_cases("bare_directory")
    rules = Rules(bare_directory="full")

    assert [(of(command, rules), command) for _, command in cases] == cases
    without = ["nothing" if expected == "nothing" else "targeted" for expected, _ in cases]
    assert [of(command, Rules()) for _, command in cases] == without


def test_a_command_that_the_user_named_is_full():
    cases = read_rule_cases("aliases")

    assert [(of(command, ALIASES), command) for _, command in cases] == cases


@each_row(
    ("command", "testpaths", "expected"),
    [
        ("pytest tests/", ["tests"], "full"),
        ("pytest -q ./tests --cov=src", ["tests"], "full"),
        ("pytest tests", ["tests/unit", "tests/api"], "full"),
        ("pytest tests/unit tests/api", ["tests/unit", "tests/api"], "full"),
        ("pytest tests docs", ["docs", "tests"], "full"),
        ("pytest tests tests/test_a.py", ["tests"], "full"),
        ("pytest src", ["src/*/tests"], "full"),
        ("pytest /repo/tests", ["tests"], "full"),
        ("cd src && pytest ../tests", ["../tests"], "full"),
        ("pytest tests", ["docs", "tests"], "targeted"),
        ("pytest tests/unit", ["tests"], "targeted"),
        ("pytest tests/unit tests/api", ["tests"], "targeted"),
        ("pytest tests_of_mine", ["tests"], "targeted"),
        ("pytest tests", [], "targeted"),
        ("pytest tests/test_a.py", ["tests"], "targeted"),
        ("pytest tests/test_a.py", ["tests/test_a.py"], "targeted"),
        ("pytest tests -k login", ["tests"], "targeted"),
        ("pytest $TESTS", ["tests"], "targeted"),
        ("cd $DIR && pytest tests", ["tests"], "targeted"),
        ("pytest tests --co", ["tests"], "nothing"),
    ],
)
def test_a_directory_that_covers_testpaths_is_full_where_the_rule_is_on(
    command, testpaths, expected
):
    def find_project(folder: str) -> PytestProject:
        path = posixpath.normpath(posixpath.join("/repo", folder))
        return PytestProject(
            path, path, tuple(posixpath.normpath(posixpath.join(path, each)) for each in testpaths)
        )

    rules = Rules(bare_directory="covers_testpaths", find_project=find_project)

    assert of(command, rules) == expected
    without = "nothing" if expected == "nothing" else "targeted"
    assert of(command, Rules(find_project=find_project)) == without
    assert of(command, Rules(bare_directory="covers_testpaths")) == without


@each_row(
    ("text", "command", "reason"),
    [
        ("cd x;  timeout  60 'pytest' -q", "timeout 60 pytest -q", "no path, node id"),
        ("bash -c \"pytest -k 'a b'\"", "pytest -k 'a b'", "-k 'a b' selects tests"),
        ("pytest tests/a.py; pytest .", "pytest .", ". is the whole project"),
        ("pytest $X", "pytest $X", "$X is taken to name what to run"),
        ("pytest --co", "pytest --co", "--co runs no test"),
        ("git commit -m pytest", None, "no command in it runs it"),
        ("ls", None, "nothing in it names pytest"),
        ("f() { f; }; f pytest", None, "too long or too deep"),
    ],
)
def test_a_finding_names_the_command_that_decided_and_why(text, command, reason):
    finding = detect_in_text(text)

    assert finding.command == command
    assert reason in finding.reason


def test_words_need_no_quotes():
    assert detect_in_argv(["bash", "-lc", "cd x && pytest"]).full_suite
    assert detect_in_argv(["pytest", "-k", "a and b"]) == DetectionResult(
        pytest=True,
        full_suite=False,
        reason="-k 'a and b' selects tests",
        command="pytest -k 'a and b'",
        targeted=True,
    )
    assert not detect_in_argv(["echo", "x; pytest"]).pytest
    assert not detect_in_argv([]).pytest
    assert detect_in_argv(["pytest -q"]).full_suite
    assert not detect_in_argv(["pytest", "x" * 100_000]).pytest
