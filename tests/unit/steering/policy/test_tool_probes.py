r"""Tool calls in the forms that agents send them: names of tools, arguments, and Windows' shells.

The forms come from public trajectories, tool definitions and agent instructions (`executable` with
`args`, `run_pytest` with `path`, `$env:X=…; .\venv\Scripts\python -m pytest`); the values are ours.
"""

from __future__ import annotations

import json
from pathlib import Path

from ci_agent_eval.steering.policy.command_extraction import (
    detect_full_suite,
    extract_commands,
    infer_shell,
)
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS, find_danger
from ci_agent_eval.steering.policy.model import Rules, RunIntent, ToolCallRequest
from tests.tables import each_row, read_rows
from tests.unit.steering.policy.test_cases import cases


def detect(tool: str, arguments: object, rules: Rules | None = None):
    return detect_full_suite(ToolCallRequest(tool, arguments), rules or Rules())


def read_calls(kind: str) -> list[tuple[str, object]]:
    """Return the calls of a kind in `tool_calls.txt`."""
    lines = (Path(__file__).parent / "tool_calls.txt").read_text("utf-8").splitlines()
    pairs = [line.split(" ", 1) for line in lines if not line.startswith("#")]
    return [tuple(json.loads(call)) for found, call in pairs if found == kind]


def test_a_full_run_is_recognised_in_each_form():
    calls = read_calls("full")
    # Arguments may come as JSON text, too, and from Python as tuples.
    calls += [(tool, json.dumps(given)) for tool, given in calls if isinstance(given, dict | list)]
    calls += [("bash", ("pytest", "-q"))]

    assert [call for call in calls if not detect(*call).full_suite] == []
    assert len(calls) >= 150


def test_another_call_is_let_through():
    calls = read_calls("other")

    assert [call for call in calls if detect(*call).full_suite] == []
    assert len(calls) >= 70


README = "On Windows:\n\n    .venv\\Scripts\\activate\n    pytest\n"
SCRIPT = "$env:FOO = 1\ngit reset --hard\npytest\n"


@each_row(("text", "shell"), read_rows(Path(__file__).parent / "inferred_shells.jsonl"))
def test_the_shell_is_inferred_from_the_command(text, shell):
    assert infer_shell(text) == shell


@each_row("tool", ["run_shell_command", "run_in_terminal", "shell"])
@each_row("body", [README, SCRIPT])
def test_the_text_of_a_here_document_for_a_file_is_not_run(tool, body):
    arguments = {"command": f"cat > a.md <<'EOF'\n{body}EOF"}

    assert not detect(tool, arguments).full_suite
    for command in extract_commands(ToolCallRequest(tool, arguments)):
        assert find_danger(command, DANGEROUS_SETS) is None


def test_bash_is_not_taken_for_another_shell():
    bash = [case.command for case in cases() if case.shell == "bash"]
    others = [text for text in bash if infer_shell(text) != "bash"]

    # Nobody starts pytest with a backslash in its name.
    assert others == ["py\\test"]


@each_row("text", ["\n" * 10**6, ";if(" * 10**5, "a\\" * 10**5, "& " * 10**5])
def test_the_work_to_infer_a_shell_is_bounded(text):
    # Backtracking of a regular expression is not a Python call, so the length it sees is checked.
    assert infer_shell(text + "; $env:X='1'") == infer_shell(text)


@each_row(
    ("arguments", "folder"),
    [
        ({"command": "pytest", "workdir": "/repo/web"}, "/repo/web"),
        ({"command": ["pytest"], "cwd": "web/"}, "web"),
        ({"command": "cd api && pytest", "Cwd": "C:\\repo"}, "/repo/api"),
        ({"action": {"command": ["pytest"], "working_directory": "web"}}, "web"),
        ('{"command": "pytest", "directory": "web"}', "web"),
        ({"command": "pytest", "cwd": ""}, "."),
        ({"command": "pytest", "cwd": 7}, "."),
    ],
    ids=repr,
)
def test_the_folder_of_a_call_is_the_folder_of_its_run(arguments, folder):
    assert detect("shell", arguments).intents == (RunIntent("pytest", folder),)
