"""Checks that the interfaces that pytest keeps to itself are there, and are as we expect them."""

from __future__ import annotations

import ast
import copy
import inspect
import sys
import warnings

import pytest


def rewritten(config):
    """Return what pytest's rewriting makes of an assert, where passes are to be explained."""
    from _pytest.assertion import rewrite

    class Settings:
        def getini(self, name):
            return name == "enable_assertion_pass_hook" or config.getini(name)

        def __getattr__(self, name):
            return getattr(config, name)

    source = b"def f(a, b):\n    assert a == b, 'message'\n"
    tree = ast.parse(source)
    rewrite.AssertionRewriter("f.py", Settings(), source).run(tree)
    return ast.unparse(ast.fix_missing_locations(tree)).replace("@pytest_ar", "pytest_ar")


def signature(function, names):
    return list(inspect.signature(function).parameters)[: len(names)] == names


def rewrite():
    from _pytest.assertion import rewrite

    return rewrite


def expected(manager):
    found = getattr(manager, "expected_exceptions", None) or manager.expected_exception
    return found if isinstance(found, tuple) else (found,)


def reprcompare():
    from _pytest.assertion import util

    return util._reprcompare


def saferepr(value):
    from _pytest._io.saferepr import saferepr

    return saferepr(value)


def xfailed(request):
    from _pytest.skipping import xfailed_key

    return request.node.stash.get(xfailed_key, "nothing") is None


def skipping():
    from _pytest import skipping

    return skipping


def own_copy(definition):
    own = copy.copy(definition)
    own.cached_result, own._finalizers = None, []
    return own.func is definition.func and definition._finalizers is not own._finalizers


def setup_state(request):
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


def active_fixtures(request):
    definition = request._fixture_defs["seen"]
    return request._pyfuncitem is request.node and definition.argname == "seen"


def loop_fixtures():
    """Say whether a module of pytest-asyncio, where there is one, is known by its globals."""
    from ci_agent_eval.pytest_plugin.concurrency.loop_members import is_from_pytest_asyncio

    plugin = pytest.importorskip("pytest_asyncio.plugin")
    return is_from_pytest_asyncio(plugin.is_async_test) and not is_from_pytest_asyncio(looked_up)


def wrapped_checks():
    """Say whether pytest-check has its functions where they are wrapped."""
    plugin = pytest.importorskip("pytest_check")
    names = set(plugin.check_functions.__all__) | {"raises"}
    return names <= set(dir(plugin.check)) and plugin.raises(KeyError).expected_excs == (KeyError,)


def looked_up(item, name):
    from ci_agent_eval.pytest_plugin.concurrency.fixtures import look_up_definitions

    return look_up_definitions(item, name)


def initrequest(request):
    source = inspect.getsource(type(request.node)._initrequest)
    return "self.funcargs" in source and "self._request = fixtures." in source


def scopes(request):
    from _pytest.scope import Scope

    definition = request.node._fixtureinfo.name2fixturedefs["seen"][-1]
    return (
        definition._scope is Scope.Function
        and request.node.callspec._arg2scope == {"parameter": Scope.Function}
        and {scope.value for scope in Scope} >= {"session", "package", "module", "class"}
    )


def shown_warnings():
    with warnings.catch_warnings(record=True) as log:
        warnings.simplefilter("always")
        shown = warnings._showwarnmsg_impl
        warnings.warn("seen", UserWarning, stacklevel=1)
    return shown == log.append and len(log) == 1


def load_scheduling():
    from xdist.scheduler import LoadScheduling

    asked = ("node2pending", "pending", "collection", "shutting_down")
    source = inspect.getsource(LoadScheduling)
    return all(name in source for name in asked) and signature(
        LoadScheduling._send_tests, ["self", "node", "num"]
    )


def queue():
    from xdist import remote

    source = inspect.getsource(remote)
    return "self.torun" in source and ("queue.Queue()" in source or "self._items" in source)


def unittest_errors():
    from _pytest import unittest

    is_list_or_none = unittest.TestCaseFunction._excinfo is None
    return is_list_or_none and "item._excinfo.pop(0)" in inspect.getsource(unittest)


def decorated_by_wrapt():
    """Return what decorates a function of ours, or None without wrapt."""
    try:
        import wrapt
    except ImportError:
        return None
    module = sys.modules[__name__]
    return wrapt.FunctionWrapper(rewrite, module)._self_wrapper
