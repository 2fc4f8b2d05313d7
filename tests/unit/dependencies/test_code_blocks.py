"""Which part of a Python file an edit changes."""

from __future__ import annotations

import ast

import pytest

from ci_agent_eval.dependencies.code_blocks import list_imports, parse_code, split_code
from ci_agent_eval.dependencies.selection.changes import FileChange

OLD = '''
import os
LIMIT = 50

@tool
def refund(order: int, limit: int = LIMIT) -> str:
    """Refund an order."""
    # a comment
    return pay(order, limit)

class Desk:
    """A desk."""
    greeting = "Hello"

    def answer(self, text):
        def inner():
            return text
        return inner() + self.greeting

if os.environ.get("FAST"):
    def quick():
        return 1
'''


def changed(old: str, new: str) -> FileChange:
    assert old in OLD
    return FileChange("desk.py", OLD.encode(), OLD.replace(old, new).encode())


BODIES = [
    ("refund", "pay(order, limit)", "pay(order)"),
    ("Desk.answer", "return text", "return text.upper()"),
    ("Desk.answer", "inner() + self.greeting", "inner()"),
    ("quick", "return 1", "return 2"),
]


@pytest.mark.parametrize(("name", "old", "new"), BODIES)
def test_an_edit_of_a_body_changes_that_function_alone(name, old, new):
    found = changed(old, new)
    assert found.has_new_body(name)
    assert not found.has_new_definitions
    others = {"refund", "Desk.answer", "quick"} - {name}
    assert not any(map(found.has_new_body, others))


DEFINITIONS = [
    ("LIMIT = 50", "LIMIT = 51"),
    ("@tool\n", ""),
    ("limit: int = LIMIT", "limit: int = 1"),
    ("order: int,", "order: str,"),
    ("-> str", "-> int"),
    ("Refund an order.", "Refund any order."),
    ("A desk.", "The desk."),
    ('greeting = "Hello"', 'greeting = "Hi"'),
    ("class Desk:", "class Desk(Base):"),
    ('"FAST"', '"QUICK"'),
    ("    def answer(self", "    def more(self): pass\n    def answer(self"),
    ("    def quick():", "    async def quick():"),
]


@pytest.mark.parametrize(("old", "new"), DEFINITIONS)
def test_an_edit_outside_of_bodies_changes_the_definitions(old, new):
    found = changed(old, new)
    assert found.has_new_definitions
    assert not any(map(found.has_new_body, ("refund", "Desk.answer", "quick")))


def test_comments_and_blank_lines_change_nothing():
    found = changed("    # a comment\n", "\n\n    # another one\n")
    assert not found.has_new_code
    assert changed("return 1", "return 2").has_new_code


@pytest.mark.parametrize("new", [b"def (", b"\0", b"x = " + b"(" * 5_000, None])
def test_a_file_that_cannot_be_parsed_changed_whole(new):
    found = FileChange("desk.py", OLD.encode(), new)
    assert found.has_new_definitions
    assert found.has_new_body("refund")
    assert found.has_new_code


def test_functions_of_the_same_name_are_one():
    old = b"try:\n    def f(): return 1\nexcept ImportError:\n    def f(): return 2\n"
    assert FileChange("a.py", old, old.replace(b"2", b"3")).has_new_body("f")


def test_the_names_that_a_function_uses():
    tree = parse_code(OLD.encode())
    assert tree is not None
    blocks = split_code(tree)
    assert blocks is not None
    assert {"pay", "order"} <= blocks.names["refund"]
    assert {"inner", "greeting", "text"} <= blocks.names["Desk.answer"]


def test_imports_name_modules_and_members():
    source = (
        "import a.b\nfrom . import c\nfrom ..d import e\nfrom .f import g\ndef h():\n import i\n"
    )
    found = set(list_imports(ast.parse(source), "x.y"))
    assert found == {"a.b", "x.y", "x.y.c", "x.d", "x.d.e", "x.y.f", "x.y.f.g", "i"}
