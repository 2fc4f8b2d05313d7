"""Detection of calls in `with` statements that expect an exception or a warning.

The calls are recognized by the file's imports, because no code of it has run yet.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

_CATCHING_CALLS = {"pytest.raises", "pytest.RaisesExc"}
_ASSERTING_CALLS = {
    *_CATCHING_CALLS,
    "pytest.RaisesGroup",
    "pytest.warns",
    "pytest.deprecated_call",
}
_SUPPRESSING_CALLS = {"contextlib.suppress"}

_CATCHING_METHODS = {"assertRaises", "assertRaisesRegex"}
_ASSERTING_METHODS = {
    *_CATCHING_METHODS,
    "assertWarns",
    "assertWarnsRegex",
    "assertLogs",
    "assertNoLogs",
}
"""Methods of unittest.TestCase that are used in `with` statements."""


def map_import_aliases(tree: ast.Module) -> dict[str, str]:
    """Return the dotted names of a file's imports, by their local names."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            found |= {
                alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
            }
    return found


@dataclass(frozen=True)
class ExpectationFinder:
    """Recognizes calls that expect an exception or a warning, by a file's imports."""

    aliases: Mapping[str, str]

    def knows(self, call: ast.Call) -> bool:
        """Return whether the call can be recognized from the source."""
        return self.is_assertion(call) or self._resolve_name(call) in _SUPPRESSING_CALLS

    def is_assertion(self, call: ast.Call) -> bool:
        """Return whether the call, in a `with` statement, asserts something."""
        return (
            self._resolve_name(call) in _ASSERTING_CALLS
            or _get_method_name(call) in _ASSERTING_METHODS
        )

    def list_caught_types(self, call: ast.Call) -> list[ast.expr] | None:
        """Return the exception types that the call, in a `with` statement, suppresses.

        None if the source does not show them.
        """
        if self._resolve_name(call) in _SUPPRESSING_CALLS:
            return _require_plain_names(call.args)
        if (
            self._resolve_name(call) in _CATCHING_CALLS
            or _get_method_name(call) in _CATCHING_METHODS
        ):
            named = [k.value for k in call.keywords if k.arg == "expected_exception"]
            return _require_plain_names([*call.args[:1], *named]) or None
        return []

    def _resolve_name(self, call: ast.Call) -> str | None:
        """Return the dotted name of the called function, in the module that defines it."""
        match call.func:
            case ast.Name(id=name):
                return self.aliases.get(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.aliases:
                return f"{self.aliases[name]}.{attribute}"
        return None


def _get_method_name(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def _require_plain_names(types: list[ast.expr]) -> list[ast.expr] | None:
    """Return the expressions if they are safe to evaluate twice: names, and tuples of names."""
    plain = (ast.Name, ast.Attribute, ast.Tuple, ast.Starred, ast.expr_context)
    if all(isinstance(node, plain) for type_ in types for node in ast.walk(type_)):
        return types
    return None
