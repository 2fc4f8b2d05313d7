r"""Tool calls in the forms that agents send them: names of tools, arguments, and Windows' shells.

The forms come from public trajectories, tool definitions and agent instructions (`executable` with
`args`, `run_pytest` with `path`, `$env:X=…; .\venv\Scripts\python -m pytest`); the values are ours.
"""

from __future__ import annotations

import json

from ci_agent_eval.steering.policy.command_extraction import (
    detect_full_suite,
    extract_commands,
    normalize_tool_name,
)
from ci_agent_eval.steering.policy.dangerous import DANGEROUS_SETS, find_danger
from ci_agent_eval.steering.policy.model import Rules, RunIntent, ToolCallRequest
from ci_agent_eval.steering.policy.shell_inference import infer_shell
from tests.tables import each_row
from tests.unit.steering.policy.test_cases import cases

FULL: list[tuple[str, object]] = [
    # forms of arguments
    ("bash", {"code": "pytest"}),
    ("execute_command", {"cmdline": "python -m pytest -q"}),
    ("run_command", {"executable": "pytest", "args": ["-q"], "cwd": ".", "timeout_seconds": 60}),
    ("run_command", {"executable": "python", "args": ["-m", "pytest"]}),
    ("run_command", {"executable": "uv", "arguments": ["run", "pytest", "-x"]}),
    ("exec", {"program": "pytest", "args": []}),
    ("exec", {"program": "pytest"}),
    ("exec", {"program": "bash", "args": ["-lc", "cd app && pytest"]}),
    ("exec", {"program": "python3", "args": "-m pytest --tb=short"}),
    ("execute", {"Program": "C:\\venv\\Scripts\\python.exe", "Args": ["-m", "pytest"]}),
    ("execute", '{"program": "poetry", "args": ["run", "pytest"]}'),
    ("execute", {"input": {"executable": "py.test", "args": ["-v"]}}),
    ("shell", {"code": "cd backend\npytest --maxfail=1\n"}),
    ("execute", {"language": "bash", "code": "pytest -q"}),
    ("execute", {"language": "python", "code": "import pytest\npytest.main(['-q'])"}),
    ("exec", {"language": "powershell", "code": "& .venv\\Scripts\\pytest.exe"}),
    # names of tools
    ("execute_bash", {"command": "cd /workspace/app && python -m pytest", "security_risk": "LOW"}),
    ("execute_bash", {"command": "pytest", "is_input": "false"}),
    ("functions.execute_bash", {"command": "pytest -q"}),
    ("run_pytest", {}),
    ("run_pytest", {"path": "."}),
    ("run_pytest", {"args": ["-q", "--tb=short"]}),
    ("run_pytest", "-q"),
    ("mcp__qa__run_pytest", {"test_path": ".", "verbose": True}),
    ("mcp__shell__run", {"command": "pytest"}),
    ("mcp__terminal__run", {"cmd": ["pytest", "-q"]}),
    ("mcp__desk__Run", {"program": "pytest", "args": ["-x"]}),
    # modules
    ("bash", {"command": "python -m pytest.__main__ -q"}),
    ("bash", {"command": "coverage run -m pytest.__main__"}),
    # Windows, in tools that do not say their shell
    ("run_shell_command", {"command": ".venv\\Scripts\\python.exe -m pytest"}),
    ("run_shell_command", {"command": ".\\.venv\\Scripts\\python.exe -m pytest -q"}),
    ("run_shell_command", {"command": "venv\\Scripts\\pytest.exe -v"}),
    ("run_shell_command", {"command": "C:\\app\\venv311\\Scripts\\python.exe -m pytest --tb=short"}),
    ("run_in_terminal", {"command": "& .venv\\Scripts\\python.exe -m pytest"}),
    ("run_in_terminal", {"command": '& "C:\\My App\\venv\\Scripts\\python.exe" -m pytest -q'}),
    ("run_in_terminal", {"command": "cd C:\\app\\backend; .\\venv\\Scripts\\python -m pytest"}),
    ("run_in_terminal", {"command": '$env:PYTHONPATH="."; .\\venv\\Scripts\\python -m pytest -q'}),
    ("run_in_terminal", {"command": "$env:SKIP_SLOW='true'; .\\venv\\Scripts\\pytest"}),
    ("run_in_terminal", {"command": ".venv\\Scripts\\pytest.exe | Select-Object -Last 20"}),
    ("run_in_terminal", {"command": ".\\venv\\Scripts\\Activate.ps1; pytest -q 2>&1 | Out-String"}),
    ("run_terminal_cmd", {"command": 'cmd /c "venv\\Scripts\\activate && pytest"'}),
    ("run_terminal_cmd", {"command": "call .venv\\Scripts\\activate && pytest -v"}),
    ("run_terminal_cmd", {"command": "set PYTHONPATH=. && venv\\Scripts\\python.exe -m pytest"}),
    ("run_terminal_cmd", {"command": "cd /d D:\\app && .venv\\Scripts\\pytest"}),
    ("execute_command", {"command": "cd backend && ..\\.venv\\Scripts\\python.exe -m pytest -x"}),
    ("execute_command", {"command": "%VIRTUAL_ENV%\\Scripts\\python.exe -m pytest"}),
    ("execute_command", {"command": "Set-Location backend; ..\\venv\\Scripts\\python.exe -m pytest"}),
    ("terminal", {"command": "git status && tools\\venv\\Scripts\\py.test.exe"}),
    ("shell_command", {"command": 'powershell -Command ".venv\\Scripts\\python.exe -m pytest"'}),
    ("run_command", {"CommandLine": "venv\\Scripts\\python.exe -m pytest", "Cwd": "C:\\app"}),
]  # fmt: skip

NOT_FULL: list[tuple[str, object]] = [
    # targeted runs in the same forms
    ("bash", {"code": "pytest tests/test_a.py"}),
    ("execute_command", {"cmdline": "python -m pytest -k login"}),
    ("run_command", {"executable": "pytest", "args": ["tests/test_a.py"]}),
    ("run_command", {"executable": "pytest", "args": ["-k", "a or b"]}),
    ("exec", {"program": "pytest", "args": "--lf"}),
    ("exec", {"program": "pytest", "args": ["--collect-only", "-q"]}),
    ("execute", {"language": "python", "code": "import pytest\npytest.main(['tests/test_a.py'])"}),
    ("execute_bash", {"command": "python -m pytest tests/test_a.py::test_one"}),
    ("run_pytest", {"path": "tests/test_a.py"}),
    ("run_pytest", {"test_path": "tests/unit"}),
    ("run_pytest", {"test_name": "test_login"}),
    ("run_pytest", {"test_file": "test_users.py"}),
    ("run_pytest", {"args": ["-m", "smoke"]}),
    ("mcp__shell__run", {"command": "pytest tests/test_a.py"}),
    ("mcp__terminal__run", {"command": "ls"}),
    ("run_shell_command", {"command": ".venv\\Scripts\\python.exe -m pytest tests\\test_a.py -q"}),
    ("run_shell_command", {"command": ".venv\\Scripts\\python.exe -m pytest tests\\unit"}),
    ("run_in_terminal", {"command": "$env:PYTHONPATH='.'; .\\venv\\Scripts\\python -m pytest tests/test_a.py"}),
    ("run_in_terminal", {"command": "& .venv\\Scripts\\pytest.exe -k 'a and b'"}),
    ("run_terminal_cmd", {"command": "call .venv\\Scripts\\activate && pytest tests\\test_a.py"}),
    ("run_terminal_cmd", {"command": "set X=1 && venv\\Scripts\\pytest.exe --lf"}),
    ("run_command", {"CommandLine": "venv\\Scripts\\python.exe -m pytest --co", "Cwd": "C:\\app"}),
    # no run of pytest
    ("run", {"command": "pytest"}),
    ("srv.run", {"command": "pytest"}),
    ("mcp__shell__run_query", {"command": "pytest"}),
    ("run_code", {"code": "pytest"}),
    ("run_tests", {"command": "pytest"}),
    ("bash", {"description": "pytest", "code": "ls"}),
    ("bash", {"command": "cat", "code": "pytest"}),
    ("exec", {"program": "grep", "args": ["pytest", "setup.cfg"]}),
    ("exec", {"program": "pip", "args": ["install", "pytest"]}),
    ("exec", {"program": "echo", "args": ["x; pytest"]}),
    ("exec", {"args": ["tests"], "program": "ls"}),
    ("execute", {"language": "python", "code": "pytest"}),
    ("execute", {"language": "javascript", "code": "pytest"}),
    ("bash", {"command": "python -m pytest.__about__"}),
    ("bash", {"command": "python -m pytest_cov.__main__"}),
    ("run_shell_command", {"command": "type .venv\\Scripts\\pytest.exe"}),
    ("run_shell_command", {"command": "dir C:\\venv\\Scripts\\pytest.exe"}),
    ("run_shell_command", {"command": "Test-Path .\\venv\\Scripts\\pytest.exe"}),
    ("run_in_terminal", {"command": "Get-Command pytest | Select-Object Source"}),
    ("run_in_terminal", {"command": ".venv\\Scripts\\pip.exe install pytest"}),
    ("run_in_terminal", {"command": 'git commit -m "run venv\\Scripts\\pytest.exe"'}),
    ("run_shell_command", {"command": "grep -rn 'a\\|pytest' src"}),
    ("run_shell_command", {"command": "sed -i 's/\\(pytest\\)/x/' a.txt"}),
    ("run_shell_command", {"command": "rg '\\bpytest\\b' --glob '!*.lock'"}),
    ("run_shell_command", {"command": "printf 'a\\npytest\\n'"}),
    ("run_shell_command", {"command": "find . -name '*.py' -exec grep -l pytest {} \\;"}),
    ("run_shell_command", {"command": "echo \"pytest\" | tr '\\n' ' '"}),
]  # fmt: skip


def detect(tool: str, arguments: object, rules: Rules | None = None):
    return detect_full_suite(ToolCallRequest(tool, arguments), rules or Rules())


@each_row(("tool", "arguments"), FULL, ids=repr)
def test_a_full_run_is_recognised(tool, arguments):
    found = detect(tool, arguments)

    assert found.full_suite, found.reason
    # Arguments may come as JSON text, too.
    if not isinstance(arguments, str):
        assert detect(tool, json.dumps(arguments)).full_suite


@each_row(("tool", "arguments"), NOT_FULL, ids=repr)
def test_another_call_is_let_through(tool, arguments):
    found = detect(tool, arguments)

    assert not found.full_suite, found.reason


def test_there_are_at_least_40_probes_of_each_kind():
    assert min(len(FULL), len(NOT_FULL)) >= 40


README = "On Windows:\n\n    .venv\\Scripts\\activate\n    pytest\n"
SCRIPT = "$env:FOO = 1\ngit reset --hard\npytest\n"


@each_row(
    ("text", "elsewhere", "on_windows"),
    [
        ("pytest -q", "bash", "bash"),
        ("python -m pytest tests\\", "bash", "powershell"),
        ("pytest tests\\unit", "bash", "powershell"),
        ("call pytest", "bash", "cmd"),
        ("if exist tests pytest", "bash", "cmd"),
        ("set X=1 && pytest tests\\unit", "bash", "cmd"),
        ("venv\\Scripts\\pytest.exe", "powershell", "powershell"),
        ("call venv\\Scripts\\activate && pytest", "cmd", "cmd"),
        ("$env:X='1'; pytest", "powershell", "powershell"),
        ("pytest | Select-Object -Last 5", "powershell", "powershell"),
        ("pytest \\\n  -q", "bash", "bash"),
        ("find . -exec pytest {} \\;", "bash", "bash"),
        ("date +%Y%m%d", "bash", "bash"),
        ("sed 's/\\(a\\)/b/' x | grep 'a\\|b\\c'", "bash", "bash"),
        (f"cat > README.md <<'EOF'\n{README}EOF", "bash", "bash"),
        (f"cat <<-EOF >a.ps1\n{SCRIPT}EOF", "bash", "bash"),
        (f"cat << \\EOF > a.ps1\n{SCRIPT}EOF", "bash", "bash"),
        ("venv\\Scripts\\python -c 'print(1<<x)'", "powershell", "powershell"),
    ],
)
def test_the_shell_is_inferred_from_the_command_and_the_platform(text, elsewhere, on_windows):
    assert infer_shell(text, windows=False) == elsewhere
    assert infer_shell(text, windows=True) == on_windows


@each_row("tool", ["run_shell_command", "run_in_terminal", "shell"])
@each_row("body", [README, SCRIPT])
def test_the_text_of_a_here_document_for_a_file_is_not_run(tool, body):
    arguments = {"command": f"cat > a.md <<'EOF'\n{body}EOF"}

    assert not detect(tool, arguments).full_suite
    for command in extract_commands(ToolCallRequest(tool, arguments)):
        assert find_danger(command, DANGEROUS_SETS) is None


def test_bash_is_not_taken_for_another_shell():
    bash = [case.command for case in cases() if case.shell == "bash"]
    others = [text for text in bash if infer_shell(text, windows=False) != "bash"]

    # Nobody starts pytest with a backslash in its name.
    assert others == ["py\\test"]


@each_row("text", ["\n" * 10**6, ";if(" * 10**5, "a\\" * 10**5, "& " * 10**5])
def test_the_work_to_infer_a_shell_is_bounded(text):
    # Backtracking of a regular expression is no Python call, so the length it sees is checked.
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


def test_a_tool_of_an_mcp_server_keeps_its_name_in_rules():
    assert normalize_tool_name("mcp__shell__run") == "run"
