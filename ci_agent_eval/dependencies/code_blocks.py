"""The parts of a Python file: each function's body, and everything else. Pure.

Two versions of a file are compared in one process: `ast.dump` differs between Pythons. Comments
and blank lines are no part of a dump; signatures, defaults, decorators, annotations and docstrings
belong to the definitions, because they describe tools to a model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeAlias

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class CodeBlocks:
    """The hashes of a file's parts, and the names that they use."""

    definitions: str
    """Hash of everything outside of the functions' bodies."""
    bodies: Mapping[str, str]
    """Hash of each outermost function's body, by qualified name such as `Desk.refund`."""
    names: Mapping[str, frozenset[str]]
    """Names and attributes that each outermost function uses."""


def parse_code(source: bytes) -> ast.Module | None:
    """Parse a file; None if this Python cannot."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def split_code(tree: ast.Module) -> CodeBlocks | None:
    """Split a parsed file, which is changed; None if it is nested too deeply."""
    bodies: dict[str, list[str]] = {}
    names: dict[str, set[str]] = {}
    try:
        for name, function in list(_iterate_functions(tree.body, "")):
            start = 1 if ast.get_docstring(function, clean=False) is not None else 0
            body, function.body = function.body[start:], function.body[:start]
            bodies.setdefault(name, []).append("\0".join(map(ast.dump, body)))
            names.setdefault(name, set()).update(_list_names(body))
        return CodeBlocks(
            _hash_text(ast.dump(tree)),
            {name: _hash_text("\0".join(dumps)) for name, dumps in bodies.items()},
            {name: frozenset(found) for name, found in names.items()},
        )
    except RecursionError:
        return None


def _iterate_functions(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, _Function]]:
    """Yield the outermost functions of a module or class body with their qualified names."""
    for statement in body:
        if isinstance(statement, _Function):
            yield f"{prefix}{statement.name}", statement
        elif isinstance(statement, ast.ClassDef):
            yield from _iterate_functions(statement.body, f"{prefix}{statement.name}.")
        else:
            for block in _list_blocks(statement):
                yield from _iterate_functions(block, prefix)


def _list_blocks(statement: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield the nested blocks of a compound statement, such as those of `if` and `try`."""
    for field in ("body", "orelse", "finalbody"):
        block = getattr(statement, field, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _list_names(body: list[ast.stmt]) -> Iterator[str]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name):
                yield node.id
            elif isinstance(node, ast.Attribute):
                yield node.attr


def list_imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Yield the dotted names of all modules that a file may import, in any part of it.

    `package` is the file's own package; `from a import b` yields `a` and `a.b`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _resolve_base(node, package)
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _resolve_base(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    kept = parts[: len(parts) - node.level + 1]
    return ".".join([*kept, node.module] if node.module else kept)


def _hash_text(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
