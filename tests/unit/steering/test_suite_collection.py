"""How many tests a run would have, asked of the real pytest."""

from __future__ import annotations

import os
import sys

import pytest

from ci_agent_eval.steering.suite_collection import (
    build_pytest_counter,
    find_suite_python,
    parse_count,
)


@pytest.fixture
def suite(tmp_path):
    (tmp_path / "test_a.py").write_text("def test_1(): pass\ndef test_2(): pass\n")
    (tmp_path / "test_b.py").write_text("def test_3(): pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p no:cacheprovider\n")
    return tmp_path


def count(folder, *arguments, time_limit=60.0, python=sys.executable):
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    return build_pytest_counter(python, folder, environ, time_limit=time_limit)(arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((), 3), (("test_a.py",), 2), (("-k", "test_1"), 1), (("-q",), 3), (("-qq",), 3), (("-v",), 3),
     (("-k", "nothing"), 0), (("gone.py",), None), (("--no-such-option",), None)],
)  # fmt: skip
def test_pytest_itself_is_asked(suite, arguments, expected):
    assert count(suite, *arguments) == expected


def test_a_suite_that_takes_too_long_is_not_known(suite):
    (suite / "conftest.py").write_text("import threading\nthreading.Event().wait()\n")

    assert count(suite, time_limit=1.0) is None


def test_what_the_suite_started_ends_with_it(suite):
    """The process holds the other end of a pipe, which ends when the last holder does."""
    os.mkfifo(suite / "pipe")
    reader = os.open(suite / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    child = "f = open('pipe', 'wb', 0); f.write(b'x'); import threading; threading.Event().wait()"
    (suite / "conftest.py").write_text(
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}]).wait()\n"
    )

    assert count(suite, time_limit=5.0) is None

    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb", 0) as pipe:
        assert pipe.readall() == b"x"


def test_an_interpreter_that_is_none_is_not_known(suite):
    assert count(suite, python=str(suite / "no-python")) is None
    assert count(suite, "a\0b") is None


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("a.py::b\n\n1 test collected in 0.01s\n", 1),
        ("======= 12 tests collected in 0.01s =======\n", 12),
        ("3/10 tests collected (7 deselected) in 0.1s\n", 3),
        ("no tests collected in 0.01s\n", 0),
        ("no tests collected (10 deselected) in 0.01s\n", 0),
        ("a.py: 2\nb.py: 5\n", 7),
        ("ERROR: file or directory not found: x\n", None),
        ("", None),
        ("99 tests collected by somebody\n1 test collected in 0.1s\n", 1),
    ],
)
def test_what_pytest_prints_is_read(output, expected):
    assert parse_count(output) == expected


def test_the_suites_interpreter_is_the_one_that_is_set():
    assert find_suite_python({"AGENT_EVAL_PYTHON": "/p", "VIRTUAL_ENV": "/v"}) == "/p"
    assert find_suite_python({"VIRTUAL_ENV": "/v"}) == "/v/bin/python"
    assert find_suite_python({}) == sys.executable
