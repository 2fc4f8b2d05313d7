"""Every interface that pytest keeps to itself and we use is there, and is what we take it for.

When one fails, a new pytest has changed it: the message says where it is used and what to do.
`test_none_is_used_that_is_not_listed` finds those that `INTERFACES` does not list.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from _pytest import skipping, unittest
from _pytest._io.saferepr import saferepr
from _pytest.assertion import rewrite, util
from _pytest.runner import SetupState
from _pytest.scope import Scope
from _pytest.skipping import xfailed_key

import ci_agent_eval

PACKAGE = Path(ci_agent_eval.__file__).parent
PLUGIN = PACKAGE / "pytest_plugin"

NO_INTERFACE = {"_getframe", "_pytest", "_hypothesis_pytestplugin"}
"""Of Python's documented `sys`, and the names of packages that own a frame or a hook."""

ASSERTS = "docs/decisions/0032-evidence.md says what to weigh"
CLAIMED = "leave the tests that pytest-asyncio claims to it; see docs/decisions/0028"
CONCURRENCY = (
    "docs/decisions/0028-concurrent-episodes.md says what it is for; without it episodes run one "
    "by one"
)


class Interface(NamedTuple):
    """Names of something private, how to see that it is as expected, and what else to do."""

    names: str
    holds: Callable[[pytest.FixtureRequest, pytest.Metafunc], bool]
    """Given the request and the metafunc of a test whose fixture is `seen`."""
    remedy: str


def definition(request):
    return request.node._fixtureinfo.name2fixturedefs["seen"][-1]


def is_fixture_info_known(request, _):
    return (
        "request" in request.node._fixtureinfo.argnames
        and definition(request).func.__module__ == request.module.__name__
        and definition(request).argnames == ("request",)
    )


def is_request_of_the_item(request, _):
    source = inspect.getsource(type(request.node)._initrequest)
    return (
        request._pyfuncitem is request.node
        and request._fixture_defs["seen"].argname == "seen"
        and "self.funcargs" in source
        and "self._request = fixtures." in source
    )


def is_state_of_a_fixture_known(request, _):
    own = copy.copy(definition(request))
    own.cached_result, own._finalizers = None, []
    return (
        definition(request)._finalizers is not own._finalizers
        and own._scope is Scope.Function
        and request.node.callspec._arg2scope == {"parameter": Scope.Function}
        and {scope.value for scope in Scope} >= {"session", "package", "module", "class"}
    )


def are_definitions_looked_up(request, _):
    from ci_agent_eval.pytest_plugin.concurrency.fixtures import look_up_definitions

    return look_up_definitions(request.node, "seen")[-1].argname == "seen"


def is_pytest_asyncio_known(*_):
    from ci_agent_eval.pytest_plugin.concurrency.loop_members import is_from_pytest_asyncio

    plugin = pytest.importorskip("pytest_asyncio.plugin")
    return is_from_pytest_asyncio(plugin.is_async_test) and not is_from_pytest_asyncio(definition)


def is_pytest_check_known(*_):
    plugin = pytest.importorskip("pytest_check")
    names = set(plugin.check_functions.__all__) | {"raises"}
    return (
        names <= set(dir(plugin.check))
        and plugin.raises(KeyError).expected_excs == (KeyError,)
        and pytest.importorskip("pytest_check.check_log").get_failures() == []
    )


def are_parameters_added(request, metafunc):
    calls = [(call.params, list(call.marks)) for call in metafunc._calls]
    return (
        calls == [({"parameter": 1}, [])]
        and isinstance(metafunc.fixturenames, list)
        and request.node.callspec.params == {"parameter": 1}
        and "added_late" in request.fixturenames
        and request.node.funcargs["added_late"] == "was set up"
    )


def is_setup_state_a_stack(request, _):
    state = request.session._setupstate
    finalizers, error = state.stack[request.node]
    asked = {name for name in dir(SetupState) if not name.startswith("__")}
    return (
        isinstance(state, SetupState)
        and isinstance(finalizers, list)
        and error is None
        and asked <= {"setup", "addfinalizer", "teardown_exact", "is_node_active"}
    )


def are_skips_evaluated(request, _):
    return (
        request.node.stash.get(xfailed_key, "nothing") is None
        and skipping.evaluate_skip_marks(request.node) is None
        and skipping.evaluate_xfail_marks(request.node) is None
    )


def are_warnings_shown(*_):
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        shown = warnings._showwarnmsg_impl
        warnings.warn("seen", UserWarning, stacklevel=1)
    return shown == log.append and len(log) == 1


def is_xdist_known(*_):
    from xdist import remote
    from xdist.scheduler import LoadScheduling

    scheduling, queue = inspect.getsource(LoadScheduling), inspect.getsource(remote)
    asked = ("node2pending", "pending", "collection", "shutting_down")
    return (
        all(name in scheduling for name in asked)
        and has_parameters(LoadScheduling._send_tests, ["self", "node", "num"])
        and "self.torun" in queue
        and ("queue.Queue()" in queue or "self._items" in queue)
    )


def has_parameters(function, names):
    return list(inspect.signature(function).parameters)[: len(names)] == names


def rewritten(config):
    """Return what pytest's rewriting makes of an assert, where passes are to be explained."""

    class Settings:
        def getini(self, name):
            return name == "enable_assertion_pass_hook" or config.getini(name)

        def __getattr__(self, name):
            return getattr(config, name)

    source = b"def f(a, b):\n    assert a == b, 'message'\n"
    tree = ast.parse(source)
    rewrite.AssertionRewriter("f.py", Settings(), source).run(tree)
    return ast.unparse(ast.fix_missing_locations(tree)).replace("@pytest_ar", "pytest_ar")


def are_asserts_rewritten(request, _):
    passes = (
        r"if pytest_ar\._check_if_assertion_pass_impl\(\):"
        r"(?s:.)*pytest_ar\._call_assertion_pass\(\d+, 'a == b', "
    )
    written = rewritten(request.config)
    return (
        has_parameters(rewrite.rewrite_asserts, ["mod", "source", "module_path", "config"])
        and has_parameters(rewrite.AssertionRewriter.helper, ["self", "name", "args"])
        and "pytest-" in rewrite.PYC_TAIL
        and isinstance(request.config.pluginmanager.rewrite_hook, rewrite.AssertionRewritingHook)
        and isinstance(request.config.pluginmanager.rewrite_hook._must_rewrite, set)
        and "test_*.py" in request.config.pluginmanager.rewrite_hook.fnpats
        and re.search(passes, written) is not None
        and rewrite._call_reprcompare(("==",), (False,), ("1 == 2",), (1, 2)) == "1 == 2"
        and rewrite._format_assertmsg("50%") == "50%%"
        and "pytest_ar._format_assertmsg('message')" in written
    )


def are_values_explained(request, _):
    return (
        util._reprcompare is not None
        and saferepr({7}) == "{7}"
        and len(saferepr("x" * 300)) <= 240
        and isinstance(request.config.get_terminal_writer().code_highlight, bool)
    )


def are_expected_types_known(*_):
    def expected(manager):
        found = getattr(manager, "expected_exceptions", None) or manager.expected_exception
        return found if isinstance(found, tuple) else (found,)

    return (
        KeyError in expected(pytest.raises(KeyError))
        and expected(pytest.raises((KeyError, ValueError))) == (KeyError, ValueError)
        and contextlib.suppress(KeyError, ValueError)._exceptions == (KeyError, ValueError)
    )


def is_a_decorated_function_known(*_):
    try:
        import wrapt
    except ImportError:
        return True
    module = sys.modules[__name__]
    return wrapt.FunctionWrapper(definition, module)._self_wrapper is module


INTERFACES = [
    Interface(
        "_fixtureinfo name2fixturedefs",
        is_fixture_info_known,
        "see how `pytest --fixtures-per-test` finds the definition that a test gets",
    ),
    Interface("_pyfuncitem _fixture_defs _initrequest _request", is_request_of_the_item, CLAIMED),
    Interface(
        "cached_result _finalizers _scope Scope _arg2scope",
        is_state_of_a_fixture_known,
        CONCURRENCY,
    ),
    Interface("_fixturemanager", are_definitions_looked_up, CONCURRENCY),
    Interface("_force_asyncio_fixture _loop_scope", is_pytest_asyncio_known, CLAIMED),
    Interface(
        "check_functions expected_excs _num_failures",
        is_pytest_check_known,
        "change `wrap_checks` to find where a check passes",
    ),
    Interface(
        "_obj",
        lambda request, _: request.node.getparent(pytest.Module)._obj is request.module,
        "take the module of the first collected item, and of nothing where none was collected",
    ),
    Interface(
        "_calls fixturenames",
        are_parameters_added,
        "parametrize all calls alike, and deselect the iterations that are too many; ask for the "
        "recorder in pytest_runtest_setup with item._request.getfixturevalue",
    ),
    Interface("_setupstate SetupState", is_setup_state_a_stack, CONCURRENCY),
    Interface(
        "xfailed_key skipping",
        are_skips_evaluated,
        "let every episode run alone that bears one of these marks",
    ),
    Interface(
        "_showwarnmsg_impl",
        are_warnings_shown,
        "let warnings belong to the test whose turn it is",
    ),
    Interface(
        "_send_tests torun _items",
        is_xdist_known,
        "leave xdist's own scheduling in place, and start no more than `nextitem` ahead",
    ),
    Interface(
        "_excinfo",
        lambda *_: (
            unittest.TestCaseFunction._excinfo is None
            and "item._excinfo.pop(0)" in inspect.getsource(unittest)
        ),
        "override the result that unittest is given, and keep its failures there",
    ),
    Interface(
        "rewrite rewrite_asserts AssertionRewriter AssertionRewritingHook PYC_TAIL _must_rewrite "
        "fnpats _call_reprcompare "
        "_check_if_assertion_pass_impl _call_assertion_pass _assertion_pass _format_assertmsg",
        are_asserts_rewritten,
        ASSERTS,
    ),
    Interface(
        "util _reprcompare saferepr code_highlight",
        are_values_explained,
        "show values with reprlib, without colours, cut to the length that pytest gives them",
    ),
    Interface(
        "expected_exception _exceptions",
        are_expected_types_known,
        "find by what name the context managers keep them now",
    ),
    Interface(
        "_self_wrapper",
        is_a_decorated_function_known,
        "find what else leads from a function that vcrpy decorates to vcrpy",
    ),
]
"""Of pytest, but for those of Python, xdist, pytest-asyncio, pytest-check and wrapt."""


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
    names = interface.names.split()
    places = [
        file.relative_to(PACKAGE.parent).as_posix()
        for file in sorted(PLUGIN.rglob("*.py"))
        if (imported_names(file) | private_names(file)).intersection(names)
    ]
    return f"- {interface.names} {found}. Used in {places}. What to do: {interface.remedy}."


def test_none_is_used_that_is_not_listed():
    listed = {name for each in INTERFACES for name in each.names.split()}
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
    unused = [name for each in INTERFACES for name in each.names.split() if name not in text]
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
