"""`agent-eval steer check`: an answer for a person, and lines of answers for a program."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import islice

import pytest

from tests.integration.steering.in_process import run_steer
from tests.tables import each_row

CHECK = [sys.executable, "-m", "ci_agent_eval", "steer", "check"]


@pytest.fixture
def check(tmp_path):
    def run(*arguments, given=b"", **environ):
        return run_steer(tmp_path, "check", *map(str, arguments), given=given, **environ)

    return run


def lines_of(done):
    return [json.loads(line) for line in done.stdout.decode().splitlines()]


def test_a_full_run_is_explained_and_ends_with_1(check):
    done = check("cd app && pytest -q | tail")

    assert (done.returncode, done.stderr) == (1, b"")
    assert done.stdout.decode() == (
        "full suite: it would be held back once in each session\n"
        "reason:  no path, node id, -k, -m or --lf narrows it, so every test runs\n"
        "command: pytest -q\n"
    )


def test_a_targeted_run_ends_with_0(check):
    done = check("pytest tests/test_a.py")

    assert done.returncode == 0
    assert done.stdout.decode().startswith("targeted: it goes through\nreason:  tests/test_a.py ")


def test_what_is_no_run_ends_with_0(check):
    done = check("grep pytest setup.cfg")

    assert done.returncode == 0
    assert done.stdout.decode().startswith("no run of pytest: it goes through\n")
    assert "command:" not in done.stdout.decode()


def test_the_shell_can_be_named(check):
    assert check("if ($true) { pytest }", "--shell", "powershell").returncode == 1


def test_the_rules_of_the_configuration_count(check, tmp_path):
    (tmp_path / "agent-eval-steering.yaml").write_text(
        "session: {pytest_full_suite_aliases: [make test]}\n"
    )

    assert check("make test").returncode == 1
    (tmp_path / "other.yaml").write_text("")
    assert check("make test", "--config", "other.yaml").returncode == 0


def test_what_is_asked_about_stays_text_on_a_terminal(check):
    done = check("pytest '\x1b[31m\n::error::x' -q --tb=\u202eno")

    assert b"\x1b" not in done.stdout
    assert "\u202e" not in done.stdout.decode()
    assert not any(line.startswith("::") for line in done.stdout.decode().splitlines())


@each_row("arguments", [[], ["pytest", "--jsonl"], ["pytest", "--shell", "fish"]])
def test_wrong_usage_ends_with_2(check, arguments):
    done = check(*arguments)

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr


def test_a_wrong_configuration_ends_with_2_and_its_line(check, tmp_path):
    (tmp_path / "x.yaml").write_text("session:\n  session_state_ttl: soon\n")

    done = check("pytest", "--config", "x.yaml")

    assert done.returncode == 2
    assert done.stderr.decode() == (
        "agent-eval: x.yaml:2: session_state_ttl: must be a number of seconds above 0 "
        "(given: 'soon')\n"
    )
    done = check("pytest", PYTEST_FULL_SUITE_STEERING_ENABLED="maybe")
    assert done.returncode == 2


def test_lines_are_answered_in_order_and_without_memory(check):
    calls = [
        {"tool": "bash", "arguments": {"command": "pytest"}},
        {"tool": "bash", "arguments": "pytest tests/test_a.py"},
        {"tool": "Bash", "arguments": ["pytest", "-q"]},
        {"tool": "read", "arguments": "pytest", "id": 7},
        {"tool": "bash", "arguments": {"command": "pytest"}},
        {"tool": "bash", "arguments": None},
    ]
    given = "".join(json.dumps(call) + "\n" for call in calls).encode()

    done = check("--jsonl", given=given)
    answers = lines_of(done)

    assert (done.returncode, done.stderr) == (0, b"")
    assert [answer["full_suite"] for answer in answers] == [True, False, True, False, True, False]
    assert [answer["pytest"] for answer in answers] == [True, True, True, False, True, False]
    assert [answer["command"] for answer in answers] == [
        "pytest", "pytest tests/test_a.py", "pytest -q", None, "pytest", None,
    ]  # fmt: skip
    assert all(list(a) == ["pytest", "full_suite", "command", "reason"] for a in answers)
    assert all(answer["reason"] for answer in answers)
    # The same again: nothing was remembered.
    assert check("--jsonl", given=given).stdout == done.stdout


def test_a_line_that_cannot_be_read_is_answered_in_its_place(check):
    good = b'{"tool": "bash", "arguments": "pytest"}'
    bad = [b"", b"no", b"[]", b"{}", b'{"tool": 7, "arguments": 1}', b'{"tool": "bash"}',
           b"\xff", b"[" * 50_000, b'{"tool": "bash", "arguments": ' + b"9" * 5000 + b"}"]  # fmt: skip

    done = check("--jsonl", given=b"\n".join([good, *bad, good]))
    first, *errors, last = lines_of(done)

    assert (done.returncode, done.stderr) == (0, b"")
    assert first == last
    assert first["full_suite"]
    assert [list(error) for error in errors] == [["error"]] * len(bad)
    for number, error in enumerate(errors, start=2):
        assert error["error"].startswith(f"line {number}: ")
    assert errors[1]["error"] == "line 3: is not JSON (Expecting value, column 1)"
    assert errors[3]["error"] == 'line 5: must have "tool", a text, and "arguments"'


def test_each_line_is_answered_before_the_next_is_sent(tmp_path):
    process = subprocess.Popen(
        [*CHECK, "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
    )
    with process:
        for command in ("pytest", "ls", "pytest -q"):
            line = json.dumps({"tool": "bash", "arguments": command}) + "\n"
            process.stdin.write(line.encode())
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["full_suite"] is command.startswith("py")
        process.stdin.close()

    assert process.returncode == 0


def test_a_reader_that_leaves_ends_it_quietly(tmp_path):
    line = json.dumps({"tool": "bash", "arguments": "pytest"}).encode() + b"\n"
    process = subprocess.Popen(
        [*CHECK, "--jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    process.stdin.write(line)
    process.stdin.flush()
    process.stdout.readline()
    process.stdout.close()
    process.stdin.write(line * 10)
    process.stdin.close()
    said = process.stderr.read()
    process.stderr.close()

    assert (process.wait(600), said) == (0, b"")


def test_the_exit_codes_are_documented(check):
    page = check("--help").stdout.decode()

    assert "0    no full-suite run" in page
    assert "1    a full-suite run" in page
    assert list(islice((line for line in page.splitlines() if "Usage:" in line), 1))


def test_interrupted_between_two_lines_it_ends_with_130(tmp_path):
    with subprocess.Popen(
        [*CHECK, "--jsonl"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        process.stdin.write(b'{"tool": "bash", "arguments": "pytest"}\n')
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["full_suite"] is True
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=600)

    assert (process.returncode, said) == (130, b"\nagent-eval: interrupted\n")
