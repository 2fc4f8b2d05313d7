"""Check, doctor and statistics of steering."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest

from ci_agent_eval.steering.hook.agents import AGENTS
from tests.integration.steering.in_process import run_steer
from tests.integration.steering.test_install import run_text
from tests.tables import each_row

# `agent-eval steer check`: an answer for a person, and lines of answers for a program.


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


# `agent-eval steer doctor`: does the hook in the settings hold a full run?


@pytest.fixture
def steer(tmp_path):
    (tmp_path / "app").mkdir()
    return functools.partial(run_text, tmp_path)


@pytest.fixture
def settings(tmp_path):
    return tmp_path / "app/.claude/settings.json"


def test_the_hooks_of_all_agents_hold_a_full_run(steer, tmp_path):
    for number, name in enumerate(AGENTS):
        steer("install", "--for", name, "--user" if number % 2 else "--project")

    done = steer("doctor")

    steps = {name: each.next_step for name, each in AGENTS.items()}
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"{name}: the hook holds a full run" + (f". {step}" if step else "")
        for name, step in steps.items()
    ]
    assert not (tmp_path / ".local").exists()


def test_a_missing_hook_is_found(steer):
    assert steer("doctor").returncode == 2
    done = steer("doctor", "--for", "claude-code")

    install = "agent-eval steer install --for claude-code"
    missing = f"claude-code: no settings contain the hook; run `{install}`\n"
    assert (done.returncode, done.stdout) == (1, missing)


def test_a_command_that_install_does_not_write_is_not_run(steer, settings, tmp_path):
    ran, script = tmp_path / "ran", tmp_path / "app/agent-eval"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    own = Path(sys.executable).with_name("agent-eval")
    cases = {
        f"./agent-eval steer hook --for claude-code; touch {ran}": "the program is not an absolute path: ./agent-eval",
        "agent-eval steer hook --for claude-code": "the program is not an absolute path: agent-eval",
        f"{own} steer hook --for claude-code; touch {ran}": "is not quoted as",
        f"{own} steer hook --for claude-code --config $(touch${{IFS}}{ran})": "is not quoted as",
        f"{own} steer hook --config\n{script}": "is not quoted as",
        f"{own} steer hook --verbose": "unknown option '--verbose'",
        f"{tmp_path}/agent-eval steer hook": f"command not found: {tmp_path}/agent-eval",
    }
    steer("install", "--for", "claude-code")
    installed = json.loads(settings.read_text())["hooks"]["PreToolUse"]
    wrong = []
    for command, problem in cases.items():
        hook = {"hooks": [{"type": "command", "command": command}]}
        settings.write_text(json.dumps({"hooks": {"PreToolUse": [*installed, hook]}}))
        done = steer("doctor", "--for", "claude-code")
        if done.returncode != 1 or f"{settings}: {problem}" not in done.stdout:
            wrong.append((command, done))

    assert wrong == []
    assert not ran.exists()


OFF = json.dumps({"disableAllHooks": True})
SWITCHES = [
    ("claude-code", "app/.claude/settings.local.json", OFF, "disableAllHooks = true"),
    ("gemini", ".gemini/settings.json", '{"hooksConfig": {"enabled": false}} // x', "hooksConfig.enabled = false"),
    ("codex", ".codex/config.toml", "[features]\nhooks = false\n", "features.hooks = false"),
    ("copilot", "app/.github/copilot/settings.json", OFF, "disableAllHooks = true"),
]  # fmt: skip


@each_row("switch", SWITCHES, ids=[each[0] for each in SWITCHES])
def test_settings_that_switch_hooks_off_are_found(tmp_path, switch):
    agent, file, text, setting = switch
    run_text(tmp_path, "install", "--for", agent)
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)

    done = run_text(tmp_path, "doctor", "--for", agent)

    reason = f"{agent}: {path}: {setting} switches the hooks off\n"
    assert (done.returncode, done.stdout) == (1, reason)


def test_a_hook_that_lets_a_full_run_through_is_found(steer, tmp_path):
    (tmp_path / "app/agent-eval-steering.yaml").write_text("session: 7\n")
    steer("install", "--for", "claude-code")

    done = steer("doctor", "--for", "claude-code")

    assert done.returncode == 1
    assert "the hook lets a full run through" in done.stdout
    assert "agent-eval-steering.yaml:1: session: must be a mapping" in done.stdout


def test_a_program_that_does_not_start_is_found(steer, settings, tmp_path):
    steer("install", "--for", "claude-code")
    (tmp_path / "agent-eval").write_text("#!/nowhere\n")
    (tmp_path / "agent-eval").chmod(0o755)
    own = Path(sys.executable).with_name("agent-eval")
    settings.write_text(settings.read_text().replace(str(own), f"{tmp_path}/agent-eval"))

    done = steer("doctor", "--for", "claude-code")

    assert done.returncode == 1
    assert "the hook does not work: " in done.stdout


def test_a_broken_file_is_named(steer, settings, tmp_path):
    steer("install", "--for", "claude-code")
    local = settings.with_name("settings.local.json")
    local.write_text('{"env": {"KEY": "sk-1"}')
    done = steer("doctor")

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{local}: cannot be read (" in done.stderr
    assert "sk-1" not in done.stderr

    steer("install", "--for", "opencode")
    plugin = tmp_path / "app/.opencode/plugins/agent-eval.js"
    plugin.write_text(
        re.sub("(?m)^const COMMAND = .*", "const COMMAND = [oops", plugin.read_text())
    )
    done = steer("doctor")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        f"{plugin}: COMMAND is not a list of words; run `agent-eval steer install`" in done.stderr
    )


# `agent-eval steer stats` after a session of hook processes.


ENABLE = "--enable-pytest-full-suite-steering"


@pytest.fixture
def steer_of_stats(tmp_path):
    def run(*words, event=None):
        given, state = json.dumps(event).encode(), str(tmp_path / "state")
        done = run_steer(tmp_path, *words, given=given, XDG_STATE_HOME=state)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def build_claude_event(command):
    return {
        "session_id": "s",
        "transcript_path": "/t",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command},
    }


def test_a_session_is_counted(steer_of_stats):
    commands = ["pytest", "pytest --co", "pytest tests/test_a.py", "pytest -q", "ls"]
    for command in commands:
        code, _, errors = steer_of_stats(
            "hook", "--for=claude-code", ENABLE, event=build_claude_event(command)
        )
        assert (code, errors) == (0, "")

    code, text, _ = steer_of_stats("stats")
    assert code == 0
    assert [line.partition(" in ")[0].split(" (")[0] for line in text.splitlines()] == [
        "held back:     1 full run",
        "redirected:    0",
        "insisted:      1",
        "neither:       0",
        "full runs:     1",
        "targeted runs: 1",
    ]
    assert json.loads(steer_of_stats("stats", "--format", "json")[1])["full_runs"] == 1


def test_without_a_session_there_is_nothing_to_count(steer_of_stats, tmp_path):
    assert steer_of_stats("stats") == (0, "no full run was held back yet\n", "")
    assert not (tmp_path / "state").exists()


def test_another_file_is_refused(steer_of_stats, tmp_path):
    (tmp_path / "other").write_text("no database" * 99)

    code, _, errors = steer_of_stats("stats", "--store", "other")
    assert code == 2
    assert "delete it, or name another one with --store" in errors
