"""Where commands stand in a tool call: names of tools, forms of arguments."""

from __future__ import annotations

from ci_agent_eval.steering.policy.command_extraction import (
    MAX_DEPTH,
    detect_full_suite,
)
from ci_agent_eval.steering.policy.model import Rules, RunIntent, ToolCallRequest
from tests.tables import each_row

# The list of the document, as it stands there.
DOCUMENTED_TOOLS = [
    *("bash", "cmd", "shell"),
    *("exec", "exec_command", "execute", "execute_command"),
    *("run_command", "run_shell_command", "run_terminal_cmd"),
    *("powershell", "pwsh", "executepwsh"),
    *("python", "terminal", "local_shell", "container.exec"),
]


def is_full(tool: str, arguments: object) -> bool:
    return detect_full_suite(ToolCallRequest(tool, arguments), Rules()).full_suite


@each_row("tool", DOCUMENTED_TOOLS)
def test_each_tool_of_the_document_is_looked_at_in_any_case(tool):
    for name in (tool, tool.upper(), tool.title(), f" {tool} ", f"mcp__desk__{tool}"):
        assert is_full(name, {"command": "python -m pytest"}), name


@each_row("tool", ["functions.bash", "Functions.Exec_Command", "srv.pytest"])
def test_what_a_tool_belongs_to_may_stand_before_it(tool):
    assert is_full(tool, {"args": "-q"} if "pytest" in tool else {"command": "pytest"})


def test_of_several_commands_one_full_run_is_enough_and_is_the_one_named():
    found = detect_full_suite(
        ToolCallRequest("bash", {"commands": ["pytest tests/a.py", "pytest -q"]}), Rules()
    )

    assert found.full_suite
    assert found.command == "pytest -q"


def test_a_call_has_the_intents_of_all_its_commands_each_once():
    commands = ["cd a && pytest -q", "pytest tests/test_a.py", "pytest", "python -m pytest"]
    found = detect_full_suite(ToolCallRequest("bash", {"commands": commands}), Rules())

    assert found.intents == (RunIntent("pytest", "a"), RunIntent("pytest", "."))


def test_what_is_nested_without_end_is_given_up():
    deep: object = "pytest"
    for _ in range(MAX_DEPTH + 1):
        deep = {"body": deep}
    text = "[" * 100_000

    assert not is_full("bash", deep)
    assert not is_full("bash", text)


def test_a_call_of_more_commands_than_are_looked_at_says_so():
    many = detect_full_suite(
        ToolCallRequest("bash", {"commands": ["ls"] * 300 + ["pytest"]}), Rules()
    )
    long = detect_full_suite(
        ToolCallRequest(
            "bash", {"commands": ["ls " + "x" * 60_000, "ls " + "y" * 6_000, "pytest"]}
        ),
        Rules(),
    )
    enough = detect_full_suite(
        ToolCallRequest("bash", {"commands": ["ls"] * 255 + ["pytest"]}), Rules()
    )

    assert (many.full_suite, long.full_suite, enough.full_suite) == (False, False, True)
    assert many.reason.endswith("; the call holds more than is looked at")
    assert long.reason == many.reason
    assert "more" not in enough.reason


@each_row(
    ("tool", "arguments"),
    [
        ("own_exec", {"command": "pytest"}),
        ("mcp__desk__Own_Exec", {"command": ["pytest", "-q"]}),
        ("functions.own_exec", '{"command": "pytest"}'),
        ("do_it", {"Line": "pytest"}),
        ("do_it", {"line": "", "code": "pytest"}),
        ("do_it", "pytest"),
    ],
)
def test_the_user_s_shell_tools_are_looked_at(tool, arguments):
    named = {"Own_Exec": (), "do_it": ("line", "code")}
    assert detect_full_suite(ToolCallRequest(tool, arguments), Rules(shell_tools=named)).full_suite
    assert not is_full(tool, arguments)


def test_only_the_named_arguments_of_a_shell_tool_are_commands():
    rules = Rules(shell_tools={"do_it": ("line",)})
    assert not detect_full_suite(ToolCallRequest("do_it", {"command": "pytest"}), rules).full_suite
    assert not detect_full_suite(
        ToolCallRequest("do_it", {"line": "ls", "code": "pytest"}), rules
    ).full_suite
