"""Unwrapping of Python code: `pytest.main(…)` and started processes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping

from ci_agent_eval.steering.policy.words import PythonCode, ShellCommand, ShellScript, Word

_STARTERS = frozenset(
    {"os.system", "os.popen", "subprocess.run", "subprocess.call", "subprocess.check_call"}
    | {"subprocess.check_output", "subprocess.Popen", "subprocess.getoutput"}
    | {"subprocess.getstatusoutput"}
)
_MAX_CHARACTERS = 20_000
"""Maximum length of the parsed code."""
_MAX_DEPTH = 50
"""Maximum number of added lists."""


def unwrap_python(code: PythonCode) -> Iterator[ShellCommand | ShellScript]:
    """Yield the commands and scripts that Python code runs; nothing for invalid code."""
    text = code.text
    if len(text) > _MAX_CHARACTERS:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    names: dict[str, str] = {}
    values: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        _record_names(node, names, values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield from _unwrap_call(node, names, values, code.parameters)


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
) -> Iterator[ShellCommand | ShellScript]:
    function = _get_dotted_name(node.func)
    head, dot, rest = function.partition(".")
    function = f"{names.get(head, head)}{dot}{rest}"
    argument = node.args[0] if node.args else None
    if argument is None:
        argument = next((each.value for each in node.keywords if each.arg == "args"), None)
    if isinstance(argument, ast.Name):
        argument = values.get(argument.id, argument)
    if function in {"pytest.main", "pytest.cmdline.main", "pytest.console_main"}:
        arguments = parameters if argument is None or _is_argv(argument) else _read_words(argument)
        yield ShellCommand((Word("pytest"), *arguments))
    elif function == "runpy.run_module":
        yield ShellCommand(tuple(_read_words(argument)))
    elif function not in _STARTERS:
        return
    elif isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield ShellScript(argument.value)
    else:
        yield ShellCommand(tuple(_read_words(argument)))


def _get_dotted_name(node: ast.expr) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _read_words(node: ast.expr | None, depth: int = 0) -> list[Word]:
    """Return the words of a literal list; one unknown word for other expressions."""
    if node is None:
        return []
    if isinstance(node, ast.List | ast.Tuple):
        return [_read_word(each) for each in node.elts]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth < _MAX_DEPTH:
        return [*_read_words(node.left, depth + 1), *_read_words(node.right, depth + 1)]
    text = _unwrap_split(node)
    if isinstance(text, ast.Constant):
        return [Word(part) for part in str(text.value or "").split()]
    return [Word("{…}", known=False)]


def _unwrap_split(node: ast.expr) -> ast.expr:
    """Return `"a b"` for `"a b".split()`, and other nodes unchanged."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr == "split" else node
    return node


def _is_argv(node: ast.expr) -> bool:
    """Return whether pytest gets the program's own arguments: `None` or `sys.argv[1:]`."""
    if isinstance(node, ast.Constant):
        return node.value is None
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return False
    lower, upper = node.slice.lower, node.slice.upper
    from_first = isinstance(lower, ast.Constant) and lower.value == 1 and upper is None
    return from_first and _get_dotted_name(node.value) == "sys.argv"


def _read_word(node: ast.expr) -> Word:
    if isinstance(node, ast.Constant):
        return Word(str(node.value))
    if isinstance(node, ast.Attribute) and _get_dotted_name(node) == "sys.executable":
        return Word("python")
    return Word("{…}", known=False)
