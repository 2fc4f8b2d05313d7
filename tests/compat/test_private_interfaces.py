"""Every interface that pytest keeps to itself and we use is listed, with what to do without it.

The other suites of this folder, on the oldest and the newest pytest, show that they work.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import ci_agent_eval

PACKAGE = Path(ci_agent_eval.__file__).parent
PLUGIN = PACKAGE / "pytest_plugin"

NO_INTERFACE = {"_getframe", "_pytest", "_hypothesis_pytestplugin", "_agent_eval_scenarios"}
"""Of Python's `sys`, of packages that own a frame or a hook, and of an attribute of `authoring`."""

ASSERTS = "docs/decisions/0032-evidence.md says what to weigh"
CLAIMED = "leave the tests that pytest-asyncio claims to it; see docs/decisions/0028"
CONCURRENCY = (
    "docs/decisions/0028-concurrent-episodes.md says what it is for; without it episodes run one "
    "by one"
)


INTERFACES = {
    "_fixtureinfo name2fixturedefs": (
        "see how `pytest --fixtures-per-test` finds the definition that a test gets"
    ),
    "_pyfuncitem _fixture_defs _initrequest _request": CLAIMED,
    "cached_result _finalizers _scope Scope _arg2scope _fixturemanager": CONCURRENCY,
    "_setupstate SetupState": CONCURRENCY,
    "_force_asyncio_fixture _loop_scope": CLAIMED,
    "check_functions expected_excs _num_failures": (
        "change `wrap_checks` to find where a check passes"
    ),
    "_calls fixturenames": (
        "parametrize all calls alike, and deselect the iterations that are too many; ask for the "
        "recorder in pytest_runtest_setup with item._request.getfixturevalue"
    ),
    "xfailed_key skipping": "let every episode run alone that bears one of these marks",
    "_showwarnmsg_impl": "let warnings belong to the test whose turn it is",
    "_send_tests torun _items": (
        "leave xdist's own scheduling in place, and start no more than `nextitem` ahead"
    ),
    "_excinfo": "override the result that unittest is given, and keep its failures there",
    "rewrite rewrite_asserts AssertionRewriter AssertionRewritingHook PYC_TAIL _must_rewrite "
    "fnpats util _call_reprcompare _check_if_assertion_pass_impl _call_assertion_pass "
    "_assertion_pass _format_assertmsg": ASSERTS,
    "expected_exception _exceptions": "find by what name the context managers keep them now",
    "_self_wrapper": "find what else leads from a function that vcrpy decorates to vcrpy",
}
"""Names with what to do without them: of pytest, Python, xdist, pytest-asyncio and -check, wrapt."""


def test_none_is_used_that_is_not_listed():
    listed = {name for names in INTERFACES for name in names.split()}
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


def test_each_is_used():
    text = "".join(file.read_text("utf-8") for file in PLUGIN.rglob("*.py"))
    unused = [name for names in INTERFACES for name in names.split() if name not in text]
    assert unused == []


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
