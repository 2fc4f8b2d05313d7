"""Counting asserts: what the pass over a module's source puts in, and what it leaves alone."""

from __future__ import annotations

import ast
import asyncio
import textwrap
from unittest.mock import Mock

import pytest

from ci_agent_eval.pytest_plugin.evaluation.counting.count_transform import COUNTER, count_asserts
from ci_agent_eval.pytest_plugin.evaluation.counting.install import (
    AssertCounter,
    compile_counting_code,
)


class Counted(AssertCounter):
    """Counts in place of the running episode."""

    def __init__(self):
        self.times = 0

    def count_assert(self):
        self.times += 1

    def count_call(self, value):
        self.times += 1
        return value


def compiled(source: str):
    tree = ast.parse(textwrap.dedent(source))
    count_asserts(tree)
    return compile(tree, "suite.py", "exec")


def times(body: str, head: str = "import pytest") -> int:
    """Run a function with this body; return how often something counted."""
    source = f"{head}\n\nasync def run(agent):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
    counted = Counted()
    names = {COUNTER: counted}
    exec(compiled(source), names)
    asyncio.run(names["run"](Mock(unsafe=True)))
    return counted.times


@pytest.mark.parametrize(
    "body",
    [
        "assert 1 + 1 == 2, 'a message'",
        "if agent:\n    for _ in [1]:\n        assert True",
        "with pytest.raises(ValueError):\n    int('x')",
        "with pytest.raises(ValueError) as e, open('/dev/null'):\n    int('x')",
        "pytest.raises(ValueError, int, 'x')",
        "np.testing.assert_allclose([1], [1])",
        "self = agent\nself.assertEqual(1, 1)",
        "found = agent.verify_reply(1)",
        "expect(agent).to_be(1)",
        "_check_total(1)",
        "check.equal(1, 1)",
        "def inner():\n    assert True\ninner()",
        "class Inner:\n    def run(self):\n        assert True\nInner().run()",
        "await check_later()",
        "try:\n    pass\nfinally:\n    assert True",
    ],
)
def test_what_counts(body):
    head = (
        "import pytest\n"
        "def expect(value):\n    return value\n"
        "def _check_total(value): pass\n"
        "async def check_later(): pass\n"
        "class check:\n    equal = staticmethod(lambda a, b: None)\n"
        "class np:\n    class testing:\n        assert_allclose = check.equal\n"
    )
    assert times(body, head) == 1


@pytest.mark.parametrize(
    "body",
    [
        "1 == 2",
        "agent.assert_called_once_with",
        "if not agent:\n    assert True",
        "try:\n    assert False\nexcept AssertionError:\n    pass",
        "try:\n    agent.check.side_effect = ValueError\n    agent.check()\nexcept ValueError:\n    pass",
        "agent.expected_price()",
        "agent.checkout()",
        "check = agent\ncheck.set_max_tb(0)",
        "check = agent\ncheck.any_failures()",
        "agent.checks.append(1)",
        "agent.verified()",
        "with open('/dev/null'):\n    pass",
        "lambda: assert_it()",
        "def inner():\n    assert True",
    ],
)
def test_what_does_not_count(body):
    assert times(body) == 0


def test_an_expected_exception_that_did_not_come_does_not_count():
    with pytest.raises(pytest.fail.Exception):
        times("with pytest.raises(ValueError):\n    pass")


def test_nothing_outside_of_functions_is_changed():
    source = "assert True\nassert_it = print\nassert_it()\nclass A:\n    assert True\n"
    tree = ast.parse(source)
    count_asserts(tree)
    assert ast.unparse(tree) == ast.unparse(ast.parse(source))


def test_an_assert_stays_as_it_is_for_pytest_to_show():
    tree = ast.parse("def test():\n    assert check_it(1) == 2\n")
    count_asserts(tree)
    assert "    assert check_it(1) == 2\n" in ast.unparse(tree)


def test_no_other_line_counts_as_run():
    source = (
        "def test(a):\n    assert (a ==\n            1)\n    check(\n        a)\n    return a\n"
    )
    tree = ast.parse(source)
    count_asserts(tree)
    lines = {node.lineno for node in ast.walk(tree) if hasattr(node, "lineno")}
    assert lines == {node.lineno for node in ast.walk(ast.parse(source)) if hasattr(node, "lineno")}


@pytest.mark.parametrize("rewritten", [False, True])
def test_code_is_found_by_the_code_of_the_same_source(tmp_path, pytestconfig, rewritten):
    path = tmp_path / "test_it.py"
    path.write_text("def outer():\n    def inner(x):\n        assert x\n    return inner\n")
    codes = compile_counting_code(str(path), pytestconfig, rewritten=rewritten)
    outer = next(code for code in codes if code.co_name == "outer")
    assert COUNTER in next(c for c in codes[outer].co_consts if hasattr(c, "co_names")).co_names
    path.write_text("def outer():\n    def inner(x):\n        assert not x\n    return inner\n")
    assert outer not in compile_counting_code(str(path), pytestconfig, rewritten=rewritten)


async def later():
    return 1


def test_what_has_done_nothing_yet_does_not_count(monkeypatch):
    counted = []
    name = "ci_agent_eval.pytest_plugin.evaluation.counting.install.note_passed_assert"
    monkeypatch.setattr(name, lambda: counted.append(1))
    coroutine, generator = later(), (x for x in ())
    assert AssertCounter.count_call(coroutine) is coroutine
    assert AssertCounter.count_call(generator) is generator
    coroutine.close()
    assert counted == []
    assert AssertCounter.count_call(None) is None
    AssertCounter.count_manager(pytest.warns(UserWarning, match="x"))
    AssertCounter.count_manager(object())
    assert counted == [1, 1]
