"""Once is once per intent: which tests would run, not how the command is spelled."""

from __future__ import annotations

import posixpath
from pathlib import Path

from ci_agent_eval.steering.policy.detection import detect_in_text
from ci_agent_eval.steering.policy.model import PytestProject, Rules, RunIntent
from tests.tables import each_row, read_rows

WHOLE_SUITE = RunIntent("pytest", ".")


@each_row(
    "command",
    read_rows(Path(__file__).parent / "whole_suite_spellings.jsonl"),
)
def test_spellings_of_the_whole_suite_are_one_intent(command):
    assert detect_in_text(command).intents == (WHOLE_SUITE,)


@each_row(
    ("command", "expected"),
    [
        ("cd backend && pytest", RunIntent("pytest", "backend")),
        ("cd backend/ && python -m pytest -x", RunIntent("pytest", "backend")),
        ("cd /repo && pytest", RunIntent("pytest", "/repo")),
        ("cd $DIR && pytest", RunIntent("pytest", None)),
        ("pytest --ignore tests/slow", RunIntent("pytest", ".", ("--ignore=tests/slow",))),
        (
            "pytest --ignore=b --deselect=c --ignore=a",
            RunIntent("pytest", ".", ("--deselect=c", "--ignore=a", "--ignore=b")),
        ),
        ("pytest --doctest-modules", RunIntent("pytest", ".", ("--doctest-modules",))),
        ("pytest --run-slow -q", RunIntent("pytest", ".", ("--run-slow",))),
        ("pytest -o testpaths=other", RunIntent("pytest", ".", ("-o=testpaths=other",))),
        ("pytest -c other.ini", RunIntent("pytest", ".", ("-c=other.ini",))),
        ("PYTEST_ADDOPTS=--ignore=x pytest", RunIntent("pytest", ".", ("--ignore=x",))),
    ],
)
def test_another_folder_and_other_tests_are_another_intent(command, expected):
    assert detect_in_text(command).intents == (expected,)


@each_row("command", ["pytest tests/test_a.py", "pytest -k a", "pytest --lf", "pytest --co", "ls"])
def test_only_full_runs_have_an_intent(command):
    assert detect_in_text(command).intents == ()


def find_project(folder):
    """A project in /repo, and another one in /repo/web."""
    path = posixpath.normpath(posixpath.join("/repo", folder))
    root = "/repo/web" if path.startswith("/repo/web") else "/repo"
    return PytestProject(path, root, (f"{root}/tests",)) if path != "/repo/unknown" else None


PROJECT = Rules(bare_directory="covers_testpaths", find_project=find_project)


@each_row(
    "command",
    ["pytest", "cd /repo && pytest", "cd src && pytest", "pytest tests/", "pytest /repo/tests -x"],
)
def test_all_folders_of_a_project_are_one_intent(command):
    assert detect_in_text(command, rules=PROJECT).intents == (RunIntent("pytest", "/repo"),)


@each_row(
    ("command", "folder"),
    [
        ("cd web && pytest", "/repo/web"),
        ("cd web/src && pytest", "/repo/web"),
        ("cd unknown && pytest", "unknown"),
        ("cd $X && pytest", None),
    ],
)
def test_another_project_is_another_intent(command, folder):
    assert detect_in_text(command, rules=PROJECT).intents == (RunIntent("pytest", folder),)
