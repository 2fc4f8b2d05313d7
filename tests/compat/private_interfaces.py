"""The interfaces that pytest keeps to itself and we use, each with its use and a remedy."""

from __future__ import annotations

import ast
import contextlib
import copy
import inspect
import re
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest

ASSERTS = ("evaluation/pass_explanations.py", "evaluation/assert_recorder.py")
DECISION = "docs/decisions/0010-evaluation-asserts.md says what to weigh"
WITHOUT_CONCURRENCY = (
    "docs/decisions/0028-concurrent-episodes.md says what it is for; without it episodes run one "
    "by one"
)


@dataclass(frozen=True)
class Interface:
    """Something private, where it is used, how to see that it is there, and what else to do."""

    name: str
    used: tuple[str, ...]
    """Files below ci_agent_eval/pytest_plugin."""
    holds: Callable[[pytest.FixtureRequest, pytest.Metafunc], bool]
    remedy: str
    words: tuple[str, ...] = ()
    """How the source calls it, where that is not by the last part of the name."""

    @property
    def spelled(self) -> tuple[str, ...]:
        return self.words or (self.name.rpartition(".")[2],)


def _rewritten(config):
    """Return what pytest's rewriting makes of an assert, where passes are to be explained."""
    from _pytest.assertion import rewrite

    class Settings:
        def getini(self, name):
            return name == "enable_assertion_pass_hook" or config.getini(name)

        def __getattr__(self, name):
            return getattr(config, name)

    source = b"def f(a, b):\n    assert a == b, 'message'\n"
    tree = ast.parse(source)
    rewrite.rewrite_asserts(tree, source, "f.py", Settings())
    return ast.unparse(ast.fix_missing_locations(tree)).replace("@pytest_ar", "pytest_ar")


def _captured_streams(config):
    """Return whether each of pytest's captures has the two streams that it switches between."""
    capturing = config.pluginmanager.get_plugin("capturemanager")._global_capturing
    captures = [getattr(each, "syscapture", each) for each in (capturing.out, capturing.err)]
    return all(hasattr(each.tmpfile, "write") and hasattr(each._old, "write") for each in captures)


def _signature(function, names):
    return list(inspect.signature(function).parameters)[: len(names)] == names


def _rewrite():
    from _pytest.assertion import rewrite

    return rewrite


def _expected(manager):
    found = getattr(manager, "expected_exceptions", None) or manager.expected_exception
    return found if isinstance(found, tuple) else (found,)


def _python():
    from _pytest import python

    return python


def _reprcompare():
    from _pytest.assertion import util

    return util._reprcompare


def _saferepr(value):
    from _pytest._io.saferepr import saferepr

    return saferepr(value)


def _xfailed(request):
    from _pytest.skipping import xfailed_key

    return request.node.stash.get(xfailed_key, "nothing") is None


def _skipping():
    from _pytest import skipping

    return skipping


def _own_copy(definition):
    own = copy.copy(definition)
    own.cached_result, own._finalizers = None, []
    return own.func is definition.func and definition._finalizers is not own._finalizers


def _setup_state(request):
    from _pytest.runner import SetupState

    state = request.session._setupstate
    finalizers, error = state.stack[request.node]
    asked = {name for name in dir(SetupState) if not name.startswith("__")}
    return (
        isinstance(state, SetupState)
        and isinstance(finalizers, list)
        and error is None
        and asked <= {"setup", "addfinalizer", "teardown_exact", "is_node_active"}
    )


def _active_fixtures(request):
    definition = request._fixture_defs["seen"]
    return request._pyfuncitem is request.node and definition.argname == "seen"


def _loop_fixtures():
    """Say whether a module of pytest-asyncio, where there is one, is known by its globals."""
    from ci_agent_eval.pytest_plugin.concurrency.loop_members import is_from_pytest_asyncio

    plugin = pytest.importorskip("pytest_asyncio.plugin")
    return is_from_pytest_asyncio(plugin.is_async_test) and not is_from_pytest_asyncio(looked_up)


def _counted_checks():
    """Say whether each function of pytest-check that compares is counted when it passes."""
    from ci_agent_eval.pytest_plugin.evaluation.soft_checks import count_passes

    functions = pytest.importorskip("pytest_check.check_functions")
    tree = ast.parse(inspect.getsource(functions))
    count_passes(tree)
    counted = {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and "count_check" in ast.unparse(node)
    }
    others = {"assert_equal", "between_equal", "check_func", "fail"}
    return set(functions.__all__) - counted == others


def _determine_setup(config):
    from _pytest.config.findpaths import determine_setup

    known = {"inifile", "override_ini", "args", "rootdir_cmd_arg", "invocation_dir"}
    asked = {"args", "rootdir_cmd_arg", "invocation_dir"}
    is_known = asked <= set(inspect.signature(determine_setup).parameters) <= known
    return is_known and config._rootpath == config.rootpath


def looked_up(item, name):
    from ci_agent_eval.pytest_plugin.concurrency.fixtures import look_up_definitions

    return look_up_definitions(item, name)


def _initrequest(request):
    source = inspect.getsource(type(request.node)._initrequest)
    return "self.funcargs" in source and "self._request = fixtures." in source


def _scopes(request):
    from _pytest.scope import Scope

    definition = request.node._fixtureinfo.name2fixturedefs["seen"][-1]
    return (
        definition._scope is Scope.Function
        and request.node.callspec._arg2scope == {"parameter": Scope.Function}
        and {scope.value for scope in Scope} >= {"session", "package", "module", "class"}
    )


def _configured_filters(request):
    from _pytest.warnings import catch_warnings_for_item

    config = request.config
    with catch_warnings_for_item(config, config.hook, when="runtest", item=None):
        return list(warnings.filters)


def _shown_warnings():
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        shown = warnings._showwarnmsg_impl
        warnings.warn("seen", UserWarning, stacklevel=1)
    return shown == log.append and len(log) == 1


def _load_scheduling():
    from xdist.scheduler import LoadScheduling

    asked = ("node2pending", "pending", "collection", "shutting_down")
    source = inspect.getsource(LoadScheduling)
    return all(name in source for name in asked) and _signature(
        LoadScheduling._send_tests, ["self", "node", "num"]
    )


def _queue():
    from xdist import remote

    source = inspect.getsource(remote)
    return "self.torun" in source and ("queue.Queue()" in source or "self._items" in source)


def _unittest_errors():
    from _pytest import unittest

    is_list_or_none = unittest.TestCaseFunction._excinfo is None
    return is_list_or_none and "item._excinfo.pop(0)" in inspect.getsource(unittest)


INTERFACES = [
    Interface(
        "Function._fixtureinfo",
        ("collection/detection.py", "concurrency/coroutines.py"),
        lambda request, _: "request" in request.node._fixtureinfo.argnames,
        "read the test's own arguments from inspect.signature(item.function)",
    ),
    Interface(
        "Function._fixtureinfo.name2fixturedefs",
        ("collection/detection.py",),
        lambda request, _: any(
            definition.func.__module__ == request.module.__name__
            and definition.argnames == ("request",)
            for definition in request.node._fixtureinfo.name2fixturedefs["seen"]
        ),
        "see how `pytest --fixtures-per-test` finds the definition that a test gets",
        ("name2fixturedefs",),
    ),
    Interface(
        "_pytest.config.findpaths.determine_setup and Config._rootpath",
        ("rootdir.py",),
        lambda request, _: _determine_setup(request.config),
        "refuse our options with a value after a space, where it is a path that exists",
        ("findpaths", "determine_setup", "_rootpath"),
    ),
    Interface(
        "FixtureRequest._pyfuncitem and _fixture_defs",
        ("concurrency/loop_members.py",),
        lambda request, _: _active_fixtures(request),
        "find by what a request of any scope knows the test that is being set up",
        ("_pyfuncitem", "_fixture_defs"),
    ),
    Interface(
        "Function._initrequest, FixtureDef._scope and FixtureDef._finalizers",
        ("concurrency/asyncio_plugin.py",),
        lambda request, _: (
            _initrequest(request)
            and _scopes(request)
            and _own_copy(request.node._fixtureinfo.name2fixturedefs["seen"][-1])
        ),
        "leave the tests that pytest-asyncio claims to it; see docs/decisions/0036",
        ("_initrequest", "_scope", "_finalizers", "Scope"),
    ),
    Interface(
        "functions of pytest-asyncio by their module, its marks and its scopes of loops",
        ("concurrency/loop_members.py",),
        lambda *_: _loop_fixtures(),
        "leave the tests that pytest-asyncio claims to it; see docs/decisions/0036",
        ("_force_asyncio_fixture", "_loop_scope"),
    ),
    Interface(
        "sources of pytest-check's functions, and its number of failures",
        ("evaluation/soft_checks.py",),
        lambda *_: _counted_checks(),
        "change `count_passes` to find where a check passes",
        ("log_failure", "_num_failures"),
    ),
    Interface(
        "Module._obj, which is there once the module was imported",
        ("collection/replaced_conversations.py",),
        lambda request, _: request.node.getparent(pytest.Module)._obj is request.module,
        "take the module of the first collected item, and of nothing where none was collected",
        ("_obj",),
    ),
    Interface(
        "Metafunc._calls",
        ("collection/iterations.py",),
        lambda _, metafunc: (
            [(call.params, list(call.marks)) for call in metafunc._calls]
            == [({"parameter": 1}, [])]
        ),
        "parametrize all calls alike, and deselect the iterations that are too many",
    ),
    Interface(
        "Metafunc.fixturenames, to which a parameter may be added",
        ("collection/iterations.py",),
        lambda request, metafunc: (
            isinstance(metafunc.fixturenames, list)
            and request.node.callspec.params == {"parameter": 1}
        ),
        "let the item be made with the parameter, as pytest's own parametrize does",
        ("fixturenames",),
    ),
    Interface(
        "Function.fixturenames, which may be replaced before the test's setup",
        ("session.py",),
        lambda request, _: (
            "added_late" in request.fixturenames
            and request.node.funcargs["added_late"] == "was set up"
        ),
        "ask for the recorder in pytest_runtest_setup with item._request.getfixturevalue",
        ("fixturenames",),
    ),
    Interface(
        "_pytest.skipping.xfailed_key",
        ("evaluation/measurement.py",),
        lambda request, _: _xfailed(request),
        "look at the item's xfail markers and at what `pytest.xfail` raises",
    ),
    Interface(
        "Session._setupstate, a SetupState whose methods look at its `stack` alone",
        ("concurrency/setup_stacks.py",),
        lambda request, _: _setup_state(request),
        WITHOUT_CONCURRENCY,
        ("SetupState",),
    ),
    Interface(
        "Session._setupstate",
        ("concurrency/scheduler.py",),
        lambda request, _: _setup_state(request),
        WITHOUT_CONCURRENCY,
    ),
    Interface(
        "Function._initrequest",
        ("concurrency/fixtures.py",),
        lambda request, _: _initrequest(request),
        WITHOUT_CONCURRENCY,
    ),
    Interface(
        "Function._request",
        ("concurrency/episode_task.py", "concurrency/loop_members.py"),
        lambda request, _: _initrequest(request),
        WITHOUT_CONCURRENCY,
    ),
    Interface(
        "FixtureDef.cached_result and FixtureDef._finalizers, which are all of its state",
        ("concurrency/fixtures.py",),
        lambda request, _: _own_copy(request.node._fixtureinfo.name2fixturedefs["seen"][-1]),
        WITHOUT_CONCURRENCY,
        ("cached_result", "_finalizers"),
    ),
    Interface(
        "FixtureDef._scope and CallSpec2._arg2scope",
        ("concurrency/fixtures.py",),
        lambda request, _: _scopes(request),
        WITHOUT_CONCURRENCY,
        ("Scope", "_scope", "_arg2scope"),
    ),
    Interface(
        "Session._fixturemanager.getfixturedefs",
        ("concurrency/fixtures.py",),
        lambda request, _: looked_up(request.node, "seen")[-1].argname == "seen",
        WITHOUT_CONCURRENCY,
        ("_fixturemanager",),
    ),
    Interface(
        "_pytest.skipping.evaluate_skip_marks and evaluate_xfail_marks",
        ("concurrency/eligibility.py",),
        lambda request, _: (
            _skipping().evaluate_skip_marks(request.node) is None
            and _skipping().evaluate_xfail_marks(request.node) is None
        ),
        "let every episode run alone that bears one of these marks",
        ("skipping",),
    ),
    Interface(
        "warnings._showwarnmsg_impl, which is Python's",
        ("concurrency/output.py",),
        lambda *_: _shown_warnings(),
        "let warnings belong to the test whose turn it is",
        ("_showwarnmsg_impl",),
    ),
    Interface(
        "warnings._showwarnmsg and _showwarnmsg_impl, which are Python's",
        ("concurrency/warning_routing.py",),
        lambda *_: _shown_warnings() and callable(warnings._showwarnmsg),
        "let warnings of threads between two items belong to the test before",
        ("_showwarnmsg", "_showwarnmsg_impl"),
    ),
    Interface(
        "_pytest.assertion.util._reprcompare and rewrite._get_maxsize_for_saferepr",
        ("concurrency/assert_explanations.py",),
        lambda request, _: (
            _reprcompare() is not None
            and _rewrite()._get_maxsize_for_saferepr(request.config) != 0
            and _rewrite()._get_maxsize_for_saferepr(None) == 240
        ),
        "let failed asserts of threads between two items be explained without details",
        ("util", "_reprcompare", "rewrite", "_get_maxsize_for_saferepr"),
    ),
    Interface(
        "_pytest.python.pytest_pyfunc_call, which judges what a test returns",
        ("concurrency/coroutines.py",),
        lambda *_: _signature(_python().pytest_pyfunc_call, ["pyfuncitem"]),
        "warn of a plain test in a thread that returns a value, as pytest does",
        ("python", "pytest_pyfunc_call"),
    ),
    Interface(
        "sys._current_frames and the two methods of threading.Condition, which are Python's",
        ("concurrency/episode_thread.py",),
        lambda *_: (
            sys._current_frames()[threading.get_ident()].f_code.co_name == "<lambda>"
            and hasattr(threading.Condition, "_acquire_restore")
            and hasattr(threading.Condition, "_release_save")
        ),
        "interrupt no thread, and leave each behind after its time",
        ("_current_frames", "_acquire_restore", "_release_save"),
    ),
    Interface(
        "_pytest.warnings.catch_warnings_for_item",
        ("concurrency/warning_routing.py",),
        lambda request, _: _configured_filters(request) is not None,
        "let pytest build the filters of each item anew, also while threads warn",
        ("catch_warnings_for_item",),
    ),
    Interface(
        "Function._fixtureinfo, with the names of the test's own arguments",
        ("concurrency/eligibility.py",),
        lambda request, _: "request" in request.node._fixtureinfo.argnames,
        "read the test's own arguments from inspect.signature(item.function)",
        ("_fixtureinfo",),
    ),
    Interface(
        "CaptureManager._global_capturing, and the streams of its captures",
        ("concurrency/output.py",),
        lambda request, _: _captured_streams(request.config),
        "route the streams only while the event loop runs",
        ("_global_capturing", "syscapture", "tmpfile", "_old"),
    ),
    Interface(
        "LoadScheduling._send_tests, which is xdist's",
        ("concurrency/xdist_scheduling.py",),
        lambda *_: _load_scheduling(),
        "leave xdist's own scheduling in place",
        ("_send_tests",),
    ),
    Interface(
        "WorkerInteractor.torun, which is xdist's",
        ("concurrency/item_order.py",),
        lambda *_: _queue(),
        "start no more than pytest's `nextitem` ahead",
        ("torun", "_items"),
    ),
    Interface(
        "TestCaseFunction._excinfo",
        ("evaluation/measurement.py",),
        lambda *_: _unittest_errors(),
        "override the result that unittest is given, and keep its failures there",
    ),
    Interface(
        "_pytest.assertion.rewrite.rewrite_asserts",
        ASSERTS[:1],
        lambda *_: _signature(
            _rewrite().rewrite_asserts, ["mod", "source", "module_path", "config"]
        ),
        DECISION,
        ("rewrite", "rewrite_asserts"),
    ),
    Interface(
        "what pytest's rewriting writes for pytest_assertion_pass",
        ASSERTS[:1],
        lambda request, _: (
            re.search(
                r"if pytest_ar\._check_if_assertion_pass_impl\(\):"
                r"(?s:.)*pytest_ar\._call_assertion_pass\(\d+, 'a == b', ",
                _rewritten(request.config),
            )
            is not None
        ),
        DECISION,
        ("_check_if_assertion_pass_impl", "_call_assertion_pass"),
    ),
    Interface(
        "_pytest.assertion.rewrite._call_reprcompare",
        ASSERTS,
        lambda *_: _rewrite()._call_reprcompare(("==",), (False,), ("1 == 2",), (1, 2)) == "1 == 2",
        DECISION,
    ),
    Interface(
        "_pytest.assertion.util._reprcompare",
        ("evaluation/stable_explanations.py",),
        lambda request, _: _reprcompare() is not None,
        "find where a rewritten assert asks for its explanation",
        ("util", "_reprcompare"),
    ),
    Interface(
        "_pytest._io.saferepr.saferepr",
        ("evaluation/stable_explanations.py",),
        lambda *_: _saferepr({7}) == "{7}" and len(_saferepr("x" * 300)) <= 240,
        "show values with reprlib, cut to the length that pytest gives them",
    ),
    Interface(
        "contextlib.suppress._exceptions, which is Python's",
        ("evaluation/assert_recorder.py",),
        lambda *_: contextlib.suppress(KeyError, ValueError)._exceptions == (KeyError, ValueError),
        "take every `suppress` whose types the source does not show for one of failed asserts",
        ("_exceptions",),
    ),
    Interface(
        "the exception types of `pytest.raises` and `pytest.warns`",
        ("evaluation/assert_recorder.py",),
        lambda *_: (
            KeyError in _expected(pytest.raises(KeyError))
            and _expected(pytest.raises((KeyError, ValueError))) == (KeyError, ValueError)
        ),
        "find by what name the context manager keeps them now",
        ("expected_exception",),
    ),
    Interface(
        "TerminalWriter.code_highlight",
        ("evaluation/stable_explanations.py",),
        lambda request, _: isinstance(request.config.get_terminal_writer().code_highlight, bool),
        "take the colours out of what pytest explains",
    ),
    Interface(
        "_pytest.assertion.rewrite._format_assertmsg",
        ASSERTS,
        lambda request, _: (
            _rewrite()._format_assertmsg("50%") == "50%%"
            and "pytest_ar._format_assertmsg('message')" in _rewritten(request.config)
        ),
        DECISION,
    ),
]
