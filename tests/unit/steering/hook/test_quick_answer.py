"""The quick answer never lets through what the full detector would hold back.

The detector is asked without its own filter, which is the same as that of the quick answer.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ci_agent_eval.steering.hook.command import find_quick_answer
from ci_agent_eval.steering.hook.options import HookOptions
from ci_agent_eval.steering.policy.command_extraction import extract_commands
from ci_agent_eval.steering.policy.detection import clean_command, detect_unfiltered
from ci_agent_eval.steering.policy.model import Rules, ToolCallRequest
from tests.tables import each_row, read_rows
from tests.unit.steering.policy.test_cases import cases


def names_pytest(call: ToolCallRequest, rules: Rules) -> bool:
    """Whether the detector without its filter finds a run in any command of the call."""
    commands = map(clean_command, extract_commands(call, rules.shell_tools))
    return any(detect_unfiltered(each, rules, ".").pytest for each in commands if each)


def event_of(arguments: object, tool: str = "Bash") -> bytes:
    event = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": arguments}
    return json.dumps(event).encode()


def is_quick(folder: Path, data: bytes) -> bool:
    return find_quick_answer(HookOptions(), data, {"CLAUDE_PROJECT_DIR": str(folder)}) is not None


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A project without settings."""
    return tmp_path_factory.mktemp("plain")


def test_each_case_that_runs_pytest_gets_the_full_answer(plain):
    missed = []
    for case in cases():
        tool = {"powershell": "pwsh", "cmd": "cmd"}.get(case.shell, "bash")
        command = case.command
        forms = ({"command": command}, json.dumps({"command": command}), [command, "-v"])
        quick = [form for form in forms if is_quick(plain, event_of(form, tool))]
        calls = [ToolCallRequest(tool, form) for form in quick]
        missed += [(case, call) for call in calls if names_pytest(call, Rules())]

    assert missed == []


PIECES = ("py", "test", "pytest", "p", "y", "t", "\\", "\n", "'", '"', "$x", "x=py;", "{", "}", ",",
          " ", ";", "|", "^", "`", "\0", "\ud800", "ﬆ", "ſ", "T", "-m", "python", "eval", "echo",
          "$?", "$#", "%", "hatch", "rye", "sh", "xargs", "powershell", "&", "\\n", "\\u0070")  # fmt: skip


@example("py\0test", 0)
@example("py\\\ntest", 2)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.integers(0, 3))
def test_any_text_that_runs_pytest_gets_the_full_answer(plain, text, depth):
    arguments: object = {"command": text}
    for _ in range(depth):
        arguments = json.dumps(arguments)

    if is_quick(plain, event_of(arguments)):
        assert not names_pytest(ToolCallRequest("Bash", arguments), Rules())


QUICK = read_rows(Path(__file__).parent / "plain_commands.jsonl")


@each_row("command", QUICK)
def test_a_command_that_names_no_runner_gets_the_quick_answer(plain, command):
    assert is_quick(plain, event_of({"command": command, "description": "Shows it"}))


JOINED = read_rows(Path(__file__).parent / "joined_names.jsonl")


@each_row("command", JOINED)
def test_a_name_that_is_joined_of_parts_gets_the_full_answer(plain, command):
    call = ToolCallRequest("bash", {"command": command})

    assert names_pytest(call, Rules()) or "hell" in command
    assert not is_quick(plain, event_of({"command": command}))


@each_row("config", [None, "steer.yaml"])
def test_with_a_settings_file_every_event_gets_the_full_answer(tmp_path, config):
    environ = {"CLAUDE_PROJECT_DIR": str(tmp_path)}
    options, data = HookOptions(config=config), event_of({"command": "ls"})
    assert find_quick_answer(options, data, environ) == ""
    (tmp_path / (config or "agent-eval-steering.yaml")).touch()
    assert find_quick_answer(options, data, environ) is None


@each_row(
    ("options", "data"),
    [
        (HookOptions(problem="unknown option"), event_of({"command": "ls"})),
        (HookOptions(agent="emacs"), event_of({"command": "ls"})),
        (HookOptions(), b""),
        (HookOptions(), b"[]"),
        (HookOptions(), b"[" * 100_000),
        (HookOptions(), b'{"hook_event_name": "PreToolUse", "tool_name": "Bash"}'),
        (HookOptions(), event_of({}, tool="run_pytest")),
        (HookOptions(), event_of({"command": ["powershell", "-e", "cAB5AHQAZQBzAHQA"]})),
    ],
)
def test_whatever_is_not_plain_gets_the_full_answer(plain, options, data):
    assert find_quick_answer(options, data, {"CLAUDE_PROJECT_DIR": str(plain)}) is None
