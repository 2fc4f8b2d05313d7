"""What of pytest's own is used that has no public name: each test names what has changed.

When one of these fails after an update of pytest, read docs/decisions/0010-evaluation-asserts.md.
"""

from __future__ import annotations

import ast
import inspect

import pytest
from _pytest._io.saferepr import saferepr
from _pytest.assertion import rewrite
from _pytest.skipping import xfailed_key

from ci_agent_eval.pytest_plugin.evaluation.passed_asserts import CountingRewriter

SOURCE = b"def test():\n    assert a == b, message\n"


class WithPassHook:
    def getini(self, name):
        assert name == "enable_assertion_pass_hook", f"the rewriter asks for {name}, too"
        return True


@pytest.fixture
def rewritten() -> str:
    tree = ast.parse(SOURCE)
    rewrite.AssertionRewriter("chat_eval.py", WithPassHook(), SOURCE).run(tree)
    return ast.unparse(tree)


def test_the_rewriter_takes_what_we_give_it():
    names = list(inspect.signature(rewrite.AssertionRewriter).parameters)
    assert names == ["module_path", "config", "source"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("_format_assertmsg", ["obj"]),
        ("_call_reprcompare", ["ops", "results", "expls", "each_obj"]),
        ("_check_if_assertion_pass_impl", []),
        ("_call_assertion_pass", ["lineno", "orig", "expl"]),
    ],
)
def test_the_functions_that_rewritten_asserts_call_are_as_we_know_them(name, arguments, rewritten):
    assert list(inspect.signature(getattr(rewrite, name)).parameters) == arguments
    assert f"@pytest_ar.{name}(" in rewritten


def test_the_block_for_the_hook_is_the_one_that_we_replace(rewritten):
    """One `if` over the hook's presence, that ends with its call, whose last value explains."""
    (*_, function) = ast.parse(rewritten.replace("@", "")).body
    blocks = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.If) and "_check_if_assertion_pass_impl" in ast.unparse(node.test)
    ]
    assert len(blocks) == 1
    last = ast.unparse(blocks[0].body[-1])
    assert last.startswith(
        "pytest_ar._call_assertion_pass(2, 'a == b', pytest_ar._format_explanation("
    )


def test_what_comes_of_it_calls_our_functions(pytestconfig):
    tree = ast.parse(SOURCE)
    CountingRewriter("chat_eval.py", pytestconfig, SOURCE).run(tree)
    written = ast.unparse(tree)
    assert "if @pytest_ar.agent_eval.note_pass(@py_assert1, False):" in written
    assert "@pytest_ar.agent_eval.keep_explanation(2, '0', @pytest_ar._format_expl" in written
    assert "@pytest_ar.agent_eval.format_message(message)" in written
    assert "_call_assertion_pass" not in written


def test_a_message_s_percent_sign_is_doubled_for_a_formatting_that_comes_or_not():
    assert rewrite._format_assertmsg("100%") == "100%%"


def test_texts_of_values_are_shortened_and_never_raise():
    class Broken:
        def __repr__(self):
            raise ValueError

    assert saferepr("x" * 1000, maxsize=10) == "'xx...xxx'"
    assert "ValueError" in saferepr(Broken())


def test_an_item_says_whether_it_is_to_fail(pytester):
    pytester.makeconftest(
        """
        from _pytest.skipping import xfailed_key

        def pytest_runtest_teardown(item):
            print(item.name, item.stash[xfailed_key] is not None)
        """
    )
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.xfail
        def test_a(): assert 0

        @pytest.mark.xfail(False, reason="no")
        def test_b(): pass
        """
    )
    result = pytester.runpytest_inprocess("-s")
    result.stdout.fnmatch_lines(["*test_a True", "*test_b False"])
    assert isinstance(xfailed_key, pytest.StashKey)


def test_a_unittest_item_keeps_what_it_raised_until_its_report(pytester):
    pytester.makeconftest(
        """
        import pytest

        @pytest.hookimpl(wrapper=True, tryfirst=True)
        def pytest_runtest_call(item):
            yield
            print(item.name, [excinfo.typename for excinfo in item._excinfo or []])
        """
    )
    pytester.makepyfile(
        """
        import unittest

        class TestCase(unittest.TestCase):
            def test_a(self): self.assertEqual(1, 2)
        """
    )
    result = pytester.runpytest_inprocess("-s")
    assert "test_a ['AssertionError']" in result.stdout.str()
