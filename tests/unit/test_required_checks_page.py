"""docs/required-checks.md: each rule of the gate names tests, and they are there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.tables import each_row

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs/required-checks.md"
RULE = re.compile(
    r"^\| (?P<found>[^|]+) \| (?:success|failure)[^|]* \| (?P<tests>[^|]*) \|$", re.MULTILINE
)
RULES = {rule["found"]: rule["tests"] for rule in RULE.finditer(PAGE.read_text())}


def test_the_table_is_there():
    assert len(RULES) >= 19


@each_row("found", RULES)
def test_each_rule_is_shown_by_tests_that_are_there(found):
    shown_by = re.findall(r"`(?P<file>[\w/]+\.py)::(?P<name>test_\w+)`", RULES[found])
    assert shown_by
    for file, name in shown_by:
        module = ast.parse((TESTS / file).read_text())
        assert name in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
