"""Unwrapping of Python code: `pytest.main(…)` and started processes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping

from ci_agent_eval.steering.policy.words import PythonCode, ShellCommand, ShellScript, Word

_STARTERS = frozenset(
    {"os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.check_call"}
    | {"subprocess.check_output", "subprocess.Popen", "subprocess.getoutput"}
    | {"subprocess.getstatusoutput"}
)
_MAX_CHARACTERS = 20_000
"""Maximum length of the parsed code."""
_ARGV = frozenset({"None", "sys.argv[1:]"})
"""Arguments of `pytest.main` with which pytest gets the program's own."""


def unwrap_python(code: PythonCode) -> list[ShellCommand | ShellScript]:
    """Return the commands and scripts that Python code runs; empty for invalid code."""
    if len(code.text) > _MAX_CHARACTERS:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code.text)
        names: dict[str, str] = {}
        values: dict[str, ast.expr] = {}
        for node in ast.walk(tree):
            _record_names(node, names, values)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        commands = [_unwrap_call(call, names, values, code.parameters) for call in calls]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [command for command in commands if command is not None]


def _record_names(node: ast.AST, names: dict[str, str], values: dict[str, ast.expr]) -> None:
    """Record the imported names and the assigned values."""
    if isinstance(node, ast.Import):
        names |= {each.asname: each.name for each in node.names if each.asname}
    elif isinstance(node, ast.ImportFrom) and node.module:
        names |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    elif isinstance(node, ast.Assign):
        values |= {each.id: node.value for each in node.targets if isinstance(each, ast.Name)}
    elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        previous = values.get(node.target.id, node.target)
        values[node.target.id] = ast.BinOp(previous, node.op, node.value)


def _unwrap_call(
    node: ast.Call,
    names: Mapping[str, str],
    values: Mapping[str, ast.expr],
    parameters: tuple[Word, ...],
) -> ShellCommand | ShellScript | None:
    head, dot, tail = _get_dotted_name(node.func).partition(".")
    function = f"{names.get(head, head)}{dot}{tail}"
    keyword = next((each.value for each in node.keywords if each.arg == "args"), None)
    argument = node.args[0] if node.args else keyword
    if isinstance(argument, ast.Name):
        argument = values.get(argument.id, argument)
    if function in {"pytest.main", "pytest.cmdline.main", "pytest.console_main"}:
        is_argv = argument is None or ast.unparse(argument) in _ARGV
        arguments = parameters if is_argv else _read_words(argument)
        return ShellCommand((Word("pytest"), *arguments))
    if function != "runpy.run_module" and function not in _STARTERS:
        return None
    if function in _STARTERS and isinstance(argument, ast.Constant):
        return ShellScript(argument.value) if isinstance(argument.value, str) else None
    return ShellCommand(tuple(_read_words(argument)))


def _get_dotted_name(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _read_words(node: ast.expr | None) -> list[Word]:
    """Return the words of a literal list; one unknown word for other expressions."""
    if node is None:
        return []
    if isinstance(node, ast.List | ast.Tuple):
        return [_read_word(each) for each in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_read_words(node.left), *_read_words(node.right)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        # `"a b".split()`
        node = node.func.value if node.func.attr == "split" else node
    if isinstance(node, ast.Constant):
        return [Word(part) for part in str(node.value or "").split()]
    return [Word("{…}", known=False)]


def _read_word(node: ast.expr) -> Word:
    if isinstance(node, ast.Constant):
        return Word(str(node.value))
    is_python = _get_dotted_name(node) == "sys.executable"
    return Word("python") if is_python else Word("{…}", known=False)
