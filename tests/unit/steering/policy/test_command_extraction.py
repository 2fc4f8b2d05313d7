"""Where commands stand in a tool call: names of tools, forms of arguments."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from ci_agent_eval.steering.policy.command_extraction import (
    MAX_DEPTH,
    Argv,
    CommandLine,
    detect_full_suite,
    extract_commands,
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


@each_row(
    "tool",
    [
        "bash_tool", "local_shell_call", "run_in_terminal", "run_terminal_command",
        "shell_command", "executeBash", "execute_shell_command", "launch-process", "run_shell",
        "shell_exec",
    ],
)  # fmt: skip
def test_each_tool_of_other_agents_is_looked_at(tool):
    assert is_full(tool, {"command": "pytest"})


@each_row("commands", [["git status", "pytest -q"], [{"command": "pytest", "args": ["-q"]}]])
def test_each_command_of_a_list_is_read(commands):
    assert is_full("run_commands", {"commands": commands})


@each_row("tool", ["functions.bash", "Functions.Exec_Command", "srv.pytest"])
def test_what_a_tool_belongs_to_may_stand_before_it(tool):
    assert is_full(tool, {"args": "-q"} if "pytest" in tool else {"command": "pytest"})


@each_row("arguments", [{"code": "CODE"}, '{"code": "CODE"}', {"Code": "CODE"}])
def test_source_for_the_tool_python_is_read(arguments):
    code = "import subprocess; subprocess.run(['pytest'])"
    given = json.loads(json.dumps(arguments).replace("CODE", code))
    assert is_full("python", given)
    assert not is_full("python", {"code": "print('pytest')"})


@each_row("tool", ["write_file", "grep", "bash_history", "", "edit", "x.edit"])
def test_other_tools_are_left_alone(tool):
    found = detect_full_suite(ToolCallRequest(tool, {"command": "pytest"}), Rules())

    assert (found.pytest, found.full_suite) == (False, False)
    assert found.reason == "the tool runs no commands"


def test_the_tool_says_whose_language_the_text_is_in():
    assert extract_commands(ToolCallRequest("pwsh", "pytest")) == (
        CommandLine("pytest", "powershell"),
    )
    assert extract_commands(ToolCallRequest("cmd", "pytest")) == (CommandLine("pytest", "cmd"),)
    assert extract_commands(ToolCallRequest("terminal", "pytest")) == (
        CommandLine("pytest", "bash"),
    )


def test_a_list_is_words_that_no_shell_reads():
    assert extract_commands(ToolCallRequest("exec", ["echo", "a; pytest"])) == (
        Argv(("echo", "a; pytest")),
    )
    assert not is_full("exec", ["echo", "a; pytest"])


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


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20)
    | st.sampled_from(["pytest", "-q", "tests/test_a.py", '{"command": "pytest"}', '["']),
    lambda inner: st.lists(inner, max_size=4)
    | st.lists(inner, max_size=3).map(tuple)
    | st.dictionaries(
        st.sampled_from(["command", "cmd", "args", "input", "body", "data", "x"]), inner, max_size=3
    ),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=2 * settings.default.max_examples)
@given(st.sampled_from([*DOCUMENTED_TOOLS, "pytest", "other"]) | st.text(max_size=5), JSON)
def test_no_arguments_raise(tool, arguments):
    found = detect_full_suite(ToolCallRequest(tool, arguments), Rules())

    assert found.reason
    assert found.pytest or not found.full_suite
    # JSON in a string means what the JSON means.
    if not isinstance(arguments, str) and "nan" not in repr(arguments):
        sent = detect_full_suite(ToolCallRequest(tool, json.dumps(arguments)), Rules())
        assert sent.full_suite == found.full_suite or not isinstance(arguments, dict | list)


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
