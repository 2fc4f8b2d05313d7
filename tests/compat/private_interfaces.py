"""The interfaces that pytest keeps to itself and we use, each with its use and a remedy."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.compat import private_interface_checks as checks

ASSERTS = ("evaluation/passed_asserts.py",)
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
        "FixtureRequest._pyfuncitem and _fixture_defs",
        ("concurrency/loop_members.py",),
        lambda request, _: checks.active_fixtures(request),
        "find by what a request of any scope knows the test that is being set up",
        ("_pyfuncitem", "_fixture_defs"),
    ),
    Interface(
        "Function._initrequest, FixtureDef._scope and FixtureDef._finalizers",
        ("concurrency/asyncio_plugin.py",),
        lambda request, _: (
            checks.initrequest(request)
            and checks.scopes(request)
            and checks.own_copy(request.node._fixtureinfo.name2fixturedefs["seen"][-1])
        ),
        "leave the tests that pytest-asyncio claims to it; see docs/decisions/0036",
        ("_initrequest", "_scope", "_finalizers", "Scope"),
    ),
    Interface(
        "functions of pytest-asyncio by their module, its marks and its scopes of loops",
        ("concurrency/loop_members.py",),
        lambda *_: checks.loop_fixtures(),
        "leave the tests that pytest-asyncio claims to it; see docs/decisions/0036",
        ("_force_asyncio_fixture", "_loop_scope"),
    ),
    Interface(
        "names of pytest-check's functions, and what its `raises` expects",
        ("evaluation/library_assertions.py",),
        lambda *_: checks.wrapped_checks(),
        "change `wrap_checks` to find where a check passes",
        ("check_functions", "expected_excs"),
    ),
    Interface(
        "pytest-check's number of failures",
        ("evaluation/soft_checks.py",),
        lambda *_: pytest.importorskip("pytest_check.check_log").get_failures() == [],
        "take the failures that it reports for all",
        ("_num_failures",),
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
        lambda request, _: checks.xfailed(request),
        "look at the item's xfail markers and at what `pytest.xfail` raises",
    ),
    Interface(
        "Session._setupstate, a SetupState whose methods look at its `stack` alone",
        ("concurrency/setup_stacks.py",),
        lambda request, _: checks.setup_state(request),
        WITHOUT_CONCURRENCY,
        ("SetupState",),
    ),
    Interface(
        "Session._setupstate",
        ("concurrency/scheduler.py",),
        lambda request, _: checks.setup_state(request),
        WITHOUT_CONCURRENCY,
    ),
    Interface(
        "Function._initrequest",
        ("concurrency/fixtures.py",),
        lambda request, _: checks.initrequest(request),
        WITHOUT_CONCURRENCY,
    ),
    Interface(
        "Function._request",
        ("concurrency/episode_task.py", "concurrency/loop_members.py"),
        lambda request, _: checks.initrequest(request),
        WITHOUT_CONCURRENCY,
    ),
    Interface(
        "FixtureDef.cached_result and FixtureDef._finalizers, which are all of its state",
        ("concurrency/fixtures.py",),
        lambda request, _: checks.own_copy(request.node._fixtureinfo.name2fixturedefs["seen"][-1]),
        WITHOUT_CONCURRENCY,
        ("cached_result", "_finalizers"),
    ),
    Interface(
        "FixtureDef._scope and CallSpec2._arg2scope",
        ("concurrency/fixtures.py",),
        lambda request, _: checks.scopes(request),
        WITHOUT_CONCURRENCY,
        ("Scope", "_scope", "_arg2scope"),
    ),
    Interface(
        "Session._fixturemanager.getfixturedefs",
        ("concurrency/fixtures.py",),
        lambda request, _: checks.looked_up(request.node, "seen")[-1].argname == "seen",
        WITHOUT_CONCURRENCY,
        ("_fixturemanager",),
    ),
    Interface(
        "_pytest.skipping.evaluate_skip_marks and evaluate_xfail_marks",
        ("concurrency/eligibility.py",),
        lambda request, _: (
            checks.skipping().evaluate_skip_marks(request.node) is None
            and checks.skipping().evaluate_xfail_marks(request.node) is None
        ),
        "let every episode run alone that bears one of these marks",
        ("skipping",),
    ),
    Interface(
        "warnings._showwarnmsg_impl, which is Python's",
        ("concurrency/output.py",),
        lambda *_: checks.shown_warnings(),
        "let warnings belong to the test whose turn it is",
        ("_showwarnmsg_impl",),
    ),
    Interface(
        "LoadScheduling._send_tests, which is xdist's",
        ("concurrency/xdist_scheduling.py",),
        lambda *_: checks.load_scheduling(),
        "leave xdist's own scheduling in place",
        ("_send_tests",),
    ),
    Interface(
        "WorkerInteractor.torun, which is xdist's",
        ("concurrency/item_order.py",),
        lambda *_: checks.queue(),
        "start no more than pytest's `nextitem` ahead",
        ("torun", "_items"),
    ),
    Interface(
        "TestCaseFunction._excinfo",
        ("evaluation/measurement.py",),
        lambda *_: checks.unittest_errors(),
        "override the result that unittest is given, and keep its failures there",
    ),
    Interface(
        "_pytest.assertion.rewrite.rewrite_asserts, AssertionRewriter and PYC_TAIL",
        ASSERTS,
        lambda *_: (
            checks.signature(
                checks.rewrite().rewrite_asserts, ["mod", "source", "module_path", "config"]
            )
            and checks.signature(
                checks.rewrite().AssertionRewriter.helper, ["self", "name", "args"]
            )
            and "pytest-" in checks.rewrite().PYC_TAIL
        ),
        DECISION,
        ("rewrite", "rewrite_asserts", "AssertionRewriter", "PYC_TAIL"),
    ),
    Interface(
        "AssertionRewritingHook._must_rewrite",
        ASSERTS,
        lambda request, _: isinstance(request.config.pluginmanager.rewrite_hook._must_rewrite, set),
        "let pytest rewrite our package at each start, where it is installed",
    ),
    Interface(
        "what pytest's rewriting writes for pytest_assertion_pass",
        ASSERTS,
        lambda request, _: (
            re.search(
                r"if pytest_ar\._check_if_assertion_pass_impl\(\):"
                r"(?s:.)*pytest_ar\._call_assertion_pass\(\d+, 'a == b', ",
                checks.rewritten(request.config),
            )
            is not None
        ),
        DECISION,
        ("_check_if_assertion_pass_impl", "_call_assertion_pass", "_assertion_pass"),
    ),
    Interface(
        "_pytest.assertion.rewrite._call_reprcompare",
        ASSERTS,
        lambda *_: (
            checks.rewrite()._call_reprcompare(("==",), (False,), ("1 == 2",), (1, 2)) == "1 == 2"
        ),
        DECISION,
    ),
    Interface(
        "_pytest.assertion.util._reprcompare",
        ("evaluation/stable_explanations.py",),
        lambda request, _: checks.reprcompare() is not None,
        "find where a rewritten assert asks for its explanation",
        ("util", "_reprcompare"),
    ),
    Interface(
        "_pytest._io.saferepr.saferepr",
        ("evaluation/stable_explanations.py",),
        lambda *_: checks.saferepr({7}) == "{7}" and len(checks.saferepr("x" * 300)) <= 240,
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
            KeyError in checks.expected(pytest.raises(KeyError))
            and checks.expected(pytest.raises((KeyError, ValueError))) == (KeyError, ValueError)
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
            checks.rewrite()._format_assertmsg("50%") == "50%%"
            and "pytest_ar._format_assertmsg('message')" in checks.rewritten(request.config)
        ),
        DECISION,
    ),
    Interface(
        "FunctionWrapper._self_wrapper, which is wrapt's",
        ("concurrency/eligibility.py",),
        lambda *_: checks.decorated_by_wrapt() in (None, checks),
        "find what else leads from a function that vcrpy decorates to vcrpy",
        ("_self_wrapper",),
    ),
]
