"""Which calls in a `with` statement expect an exception or a warning, and what they catch.

Told by the names that a file imports: nothing of it has run yet.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass

_CATCHING = {"pytest.raises", "pytest.RaisesExc"}
_ASSERTING = {*_CATCHING, "pytest.RaisesGroup", "pytest.warns", "pytest.deprecated_call"}
_SUPPRESSING = {"contextlib.suppress"}

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
    """Return the dotted names of what a file imports, by the names it gives them."""
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
    """Knows the calls that expect something, in a file with these imports."""

    aliases: Mapping[str, str]

    def knows(self, call: ast.Call) -> bool:
        """Say whether it can be told from the source what the call is."""
        return self.is_assertion(call) or self._name(call) in _SUPPRESSING

    def is_assertion(self, call: ast.Call) -> bool:
        """Say whether the call, in a `with` statement, asserts something."""
        return self._name(call) in _ASSERTING or _get_method_name(call) in _ASSERTING_METHODS

    def caught_by(self, call: ast.Call) -> list[ast.expr] | None:
        """Return the exception types that the call, in a `with` statement, keeps in.

        None where that cannot be told from the source.
        """
        if self._name(call) in _SUPPRESSING:
            return _require_plain_names(call.args)
        if self._name(call) in _CATCHING or _get_method_name(call) in _CATCHING_METHODS:
            named = [k.value for k in call.keywords if k.arg == "expected_exception"]
            return _require_plain_names([*call.args[:1], *named]) or None
        return []

    def _name(self, call: ast.Call) -> str | None:
        """Return the dotted name of what is called, as it is called where it is from."""
        match call.func:
            case ast.Name(id=name):
                return self.aliases.get(name)
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name in self.aliases:
                return f"{self.aliases[name]}.{attribute}"
        return None


def _get_method_name(call: ast.Call) -> str | None:
    return call.func.attr if isinstance(call.func, ast.Attribute) else None


def _require_plain_names(types: list[ast.expr]) -> list[ast.expr] | None:
    """Return the expressions if they may be evaluated once more: names, and tuples of them."""
    plain = (ast.Name, ast.Attribute, ast.Tuple, ast.Starred, ast.expr_context)
    if all(isinstance(node, plain) for type_ in types for node in ast.walk(type_)):
        return types
    return None
