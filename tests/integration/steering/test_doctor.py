"""`agent-eval steer doctor` with a small agent of Claude Code's format in place of the real one.

`make steering-agents` runs the real agents.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from ci_agent_eval.steering.doctor.scripted_model import FINAL_TEXT, ScriptedModel
from ci_agent_eval.steering.doctor.throwaway import run_limited

AGENT = """#!{python}
import json, os, subprocess, sys, urllib.request
from pathlib import Path

assert "-p" in sys.argv and os.environ["HTTPS_PROXY"].startswith("http://127.0.0.1:")
home, url = Path(os.environ["HOME"]), os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
Path({seen!r}).write_text(str(home))
messages = [{{"role": "user", "content": sys.argv[2]}}]
tools = [{{"name": "Bash", "input_schema": {{"properties": {{"command": {{}}}}}}}}]
while True:
    body = json.dumps({{"model": "m", "messages": messages, "tools": tools}}).encode()
    answer = json.load(urllib.request.urlopen(urllib.request.Request(url, body)))
    (block,) = answer["content"]
    if block["type"] == "text":
        break
    result = "ran"
    for folder in (home, Path.cwd()) if {hooks} else ():
        settings = folder / ".claude/settings.json"
        for group in json.loads(settings.read_text())["hooks"]["PreToolUse"] if settings.exists() else ():
            event = {{"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash",
                      "tool_input": block["input"]}}
            out = subprocess.run(group["hooks"][0]["command"], shell=True, input=json.dumps(event),
                                 capture_output=True, text=True).stdout
            if out:
                result = json.loads(out)["hookSpecificOutput"]["permissionDecisionReason"]
    messages += [{{"role": "assistant", "content": [block]}}, {{"role": "user", "content": [
        {{"type": "tool_result", "tool_use_id": block["id"], "content": result}}]}}]
"""


@pytest.fixture
def steer(tmp_path):
    (tmp_path / "app").mkdir()
    (tmp_path / "bin").mkdir()

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "ci_agent_eval", "steer", *arguments],
            cwd=tmp_path / "app",
            env={
                "HOME": str(tmp_path),
                "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
                "LANG": "C.UTF-8",
                "COVERAGE_PROCESS_START": os.environ.get("COVERAGE_PROCESS_START", ""),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


@pytest.fixture
def put_agent(tmp_path):
    def put(*, hooks=True):
        path = tmp_path / "bin/claude"
        text = AGENT.format(python=sys.executable, hooks=hooks, seen=str(tmp_path / "seen"))
        path.write_text(text)
        path.chmod(0o755)

    return put


@pytest.mark.parametrize("scope", ["--project", "--user"])
def test_a_run_that_is_held_is_proved_in_a_home_that_is_deleted(steer, put_agent, tmp_path, scope):
    put_agent()
    steer("install", "--for", "claude-code", scope)

    done = steer("doctor", "--for", "claude-code")

    program = tmp_path / "bin/claude"
    held = f"claude-code: held: {program} got the message in place of the test run\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, held, "")
    home = Path((tmp_path / "seen").read_text())
    assert home != tmp_path
    assert not home.exists()
    assert not (tmp_path / ".local").exists()
    assert steer("doctor").stdout == held


def test_an_agent_that_does_not_ask_the_hook_is_found(steer, put_agent):
    put_agent(hooks=False)
    steer("install", "--for", "claude-code")

    done = steer("doctor", "--for", "claude-code")

    assert done.returncode == 1
    assert "ran the tests without asking the hook; is it switched off there?" in done.stdout


def test_a_missing_agent_leaves_it_unproved(steer):
    steer("install", "--for", "claude-code")
    steer("install", "--for", "cursor")

    done = steer("doctor")

    assert done.returncode == 2
    claude, cursor = done.stdout.splitlines()
    assert claude == "claude-code: not proved: `claude` is not on the PATH; the hook itself works"
    assert cursor == "cursor: not proved: its agent runs only with its own service"


def test_a_missing_hook_is_found(steer, put_agent):
    put_agent()

    assert steer("doctor").returncode == 2
    done = steer("doctor", "--for", "claude-code")
    assert done.returncode == 1
    assert "no settings contain the hook; run `agent-eval steer install --for claude-code`" in (
        done.stdout
    )


def test_a_missing_program_is_found(steer, put_agent, tmp_path):
    put_agent()
    steer("install", "--for", "claude-code")
    path = tmp_path / "app/.claude/settings.json"
    path.write_text(path.read_text().replace(str(Path(sys.executable).parent) + "/", ""))

    done = steer("doctor", "--for", "claude-code")

    assert shutil.which("agent-eval", path="/usr/bin:/bin") is None
    assert done.returncode == 1
    sentence = (
        f"{path}: the program is no absolute path: agent-eval; run `agent-eval steer install`"
    )
    assert sentence in done.stdout


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (
            "./agent-eval steer hook --for claude-code; touch {ran}",
            "no absolute path: ./agent-eval",
        ),
        ("{own} steer hook --for claude-code; touch {ran}", "is not quoted as"),
        ("{own} steer hook --for claude-code --config $(touch${{IFS}}{ran})", "is not quoted as"),
        ("{own} steer hook --config\n{script}", "is not quoted as"),
        ("{own} steer hook --verbose", "unknown option '--verbose'"),
        (
            "{folder}/agent-eval steer hook --for claude-code",
            "command not found: {folder}/agent-eval",
        ),
    ],
)
def test_a_command_that_install_does_not_write_is_not_run(
    steer, put_agent, tmp_path, command, problem
):
    put_agent()
    ran, script = tmp_path / "ran", tmp_path / "app/agent-eval"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o755)
    own = Path(sys.executable).with_name("agent-eval")
    values = {"ran": ran, "script": script, "own": own, "folder": tmp_path}
    hook = {"type": "command", "command": command.format(**values)}
    path = tmp_path / "app/.claude/settings.json"
    steer("install", "--for", "claude-code")
    installed = json.loads(path.read_text())["hooks"]["PreToolUse"]
    for before in ([], installed):
        path.write_text(json.dumps({"hooks": {"PreToolUse": [*before, {"hooks": [hook]}]}}))

        done = steer("doctor", "--for", "claude-code")

        assert not ran.exists()
        assert (done.returncode, done.stderr) == (1, "")
        assert f"{path}: " in done.stdout
        assert problem.format(**values) in done.stdout
        assert not (tmp_path / "seen").exists()


def test_settings_that_disable_the_hook_are_found(steer, put_agent, tmp_path):
    put_agent()
    (tmp_path / "app/agent-eval-steering.yaml").write_text("session: 7\n")
    steer("install", "--for", "claude-code")

    done = steer("doctor", "--for", "claude-code")

    assert done.returncode == 1
    assert "the hook let a full run through" in done.stdout
    assert "agent-eval-steering.yaml:1: session: must be a mapping" in done.stdout


def test_an_agent_that_fails_is_quoted(steer, tmp_path):
    steer("install", "--for", "claude-code")
    (tmp_path / "bin/claude").write_text("#!/bin/sh\necho not today\nexit 3\n")
    (tmp_path / "bin/claude").chmod(0o755)

    done = steer("doctor", "--for", "claude-code")

    assert done.returncode == 2
    assert done.stdout.endswith("claude ran no command (exit code 3): not today\n")


@pytest.mark.parametrize("words", ["[oops", "[1]", "7"])
def test_an_invalid_command_in_the_plugin_is_named(steer, tmp_path, words):
    steer("install", "--for", "opencode")
    path = tmp_path / "app/.opencode/plugins/agent-eval.js"
    path.write_text(re.sub("(?m)^const COMMAND = .*", f"const COMMAND = {words}", path.read_text()))

    done = steer("doctor")

    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path}: COMMAND is no list of words; run `agent-eval steer install`" in done.stderr


def test_an_invalid_file_is_not_copied_and_leaves_it_unproved(steer, put_agent, tmp_path):
    put_agent()
    steer("install", "--for", "claude-code")
    local = tmp_path / "app/.claude/settings.local.json"
    local.write_text('{"env": {"KEY": "sk-1"}')

    done = steer("doctor", "--for", "claude-code")

    assert done.returncode == 2
    assert "claude-code: not proved: " in done.stdout
    assert f"; {local} was not copied (Expecting" in done.stdout
    assert "sk-1" not in done.stdout


GROUP = """#!{python}
import os, signal
started, start = os.pipe()
if os.fork() == 0:
    {child}
    os.close(1), os.close(2)
    seen, hold = os.open("seen", os.O_WRONLY), os.open("hold", os.O_RDONLY)
    os.write(seen, b"ready")
    os.write(start, b".")
    os.read(hold, 1)
    os.write(seen, b", survived")
    os._exit(0)
os.read(started, 1)
{agent}
"""
IGNORE = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@pytest.mark.parametrize(
    ("agent", "child"),
    [
        ("signal.pause()", "pass"),
        ("signal.pause()", IGNORE),
        (f"{IGNORE}; signal.pause()", IGNORE),
        ("pass", "pass"),
    ],
    ids=["a signal ends both", "the child ignores it", "both ignore it", "the agent ended"],
)
def test_a_process_that_an_agent_started_ends_with_the_run(tmp_path, agent, child):
    program = tmp_path / "agent"
    program.write_text(GROUP.format(python=sys.executable, agent=agent, child=child))
    program.chmod(0o755)
    os.mkfifo(tmp_path / "seen")
    os.mkfifo(tmp_path / "hold")

    for limit_s in (1, 8, 64, 512):  # A busy machine may start the child after the time limit.
        reader = os.open(tmp_path / "seen", os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        hold = os.open(tmp_path / "hold", os.O_RDWR)
        exit_code, _ = run_limited([str(program)], tmp_path, {}, time_limit_s=limit_s)
        os.close(hold)
        with os.fdopen(reader, "rb") as stream:
            seen = stream.read()
        if seen:
            break

    assert seen == b"ready"
    assert exit_code == (0 if agent == "pass" else None)


def ask(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode())
    with urllib.request.urlopen(request) as response:
        return response.read().decode()


SCHEMA = {"properties": {"command": {}}, "required": ["command", "is_background"]}
FORMATS = {
    "/v1/messages": (
        {"messages": [], "tools": [{"name": "Bash", "input_schema": SCHEMA}]},
        "content", 0, "input",
    ),
    "/v1/chat/completions": (
        {"messages": [], "tools": [
            {"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}]},
        "choices", 0, "message", "tool_calls", 0, "function", "arguments",
    ),
    "/v1/responses": (
        {"input": [], "tools": [
            {"type": "function", "name": "exec_command", "parameters": SCHEMA}]},
        "output", 0, "arguments",
    ),
    "/v1beta/models/m:generateContent": (
        {"contents": [], "tools": [{"functionDeclarations": [
            {"name": "run_shell_command", "parametersJsonSchema": SCHEMA}]}]},
        "candidates", 0, "content", "parts", 0, "functionCall", "args",
    ),
}  # fmt: skip


@pytest.mark.parametrize("path", FORMATS)
def test_the_model_asks_for_the_command_in_each_format(path):
    body, *keys = FORMATS[path]
    with ScriptedModel([["pytest -q"]]) as model:
        value = json.loads(ask(model.url, path, body))
        for key in keys:
            value = value[key]
        streamed = path.replace(":generate", ":streamGenerate")
        stream = ask(model.url, streamed, {**body, "stream": True})
        without_tools = ask(model.url, path, {**body, "tools": []})

    arguments = json.loads(value) if isinstance(value, str) else value
    assert arguments == {"command": "pytest -q", "is_background": False}
    assert all(line.startswith(("data: ", "event: ")) for line in stream.splitlines() if line)
    assert "pytest -q" in stream
    assert FINAL_TEXT in without_tools
