"""Every interface that pytest keeps to itself and we use is there, and is what we take it for.

When one fails, a new pytest has changed it: the message says where it is used and what to do.
`test_none_is_used_that_is_not_listed` finds those that `private_interfaces.py` does not list.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import ci_agent_eval
from tests.compat.private_interfaces import INTERFACES

PACKAGE = Path(ci_agent_eval.__file__).parent
PLUGIN = PACKAGE / "pytest_plugin"

NO_INTERFACE = {"_getframe", "_pytest", "_hypothesis_pytestplugin"}
"""Of Python's documented `sys`, and the names of packages that own a frame or a hook."""


def pytest_generate_tests(metafunc):
    if "seen" in metafunc.fixturenames:
        metafunc.fixturenames.append("parameter")
        metafunc.parametrize("parameter", [1], ids=["one"])
        METAFUNC.append(metafunc)


METAFUNC: list[pytest.Metafunc] = []


@pytest.fixture
def seen(request):
    return METAFUNC[-1]


@pytest.fixture
def added_late():
    return "was set up"


def test_each_is_what_we_take_it_for(request, seen):
    changed = [problem for each in INTERFACES if (problem := _problem(each, request, seen))]
    assert not changed, "\n".join(["pytest has changed what is private to it:", *changed])


def _problem(interface, request, metafunc):
    try:
        if interface.holds(request, metafunc):
            return None
        found = "is there and is something else"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        found = f"cannot be used: {type(error).__name__}: {error}"
    places = ", ".join(f"ci_agent_eval/pytest_plugin/{file}" for file in interface.used)
    return f"- {interface.name} {found}. Used in {places}. What to do: {interface.remedy}."


def test_none_is_used_that_is_not_listed():
    listed = {word for each in INTERFACES for word in each.spelled}
    known = listed | NO_INTERFACE | our_names()
    unknown = {
        file.relative_to(PACKAGE).as_posix(): sorted(names)
        for file in PLUGIN.rglob("*.py")
        if (names := (imported_names(file) - listed) | (private_names(file) - known))
    }
    assert not unknown, (
        f"what is private to pytest, or may be, is used here: {unknown}. Do without, or list it "
        "in INTERFACES, with a way to see that it is there and what to do when it is not"
    )


def test_each_is_used_where_the_list_says():
    for each in INTERFACES:
        for name in each.used:
            text = (PLUGIN / name).read_text("utf-8")
            assert all(word in text for word in each.spelled), (each.name, name)


def imported_names(file):
    """Return what a file imports of pytest's private modules."""
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("_pytest"):
                found |= {alias.name for alias in names}
            case ast.Import(names=names):
                found |= {alias.name for alias in names if alias.name.startswith("_pytest")}
    return found


def private_names(file):
    """Return the names with an underscore that a file takes from objects."""
    found = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        match node:
            case ast.Attribute(attr=name) if is_private(name):
                found.add(name)
            case ast.Constant(value=str(name)) if is_private(name):
                found.add(name)
    return found


def is_private(name):
    return re.fullmatch(r"_[a-z]\w*", name) is not None


def our_names():
    """Return the names with an underscore that this package defines itself."""
    found = {"_agent_eval_conversation", "_agent_eval_iteration", "_agent_eval_recorder"}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_bytes())):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    found.add(name)
                case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                    found.add(name)
                case ast.AnnAssign(target=ast.Name(id=name)) | ast.Name(id=name, ctx=ast.Store()):
                    found.add(name)
                case ast.arg(arg=name):
                    found.add(name)
    return found
