"""Assertion forms: how each is written, and what an evaluation records of it.

`FORM` stands for the form's own name. Lines count from the first line of the source.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent

PREAMBLE = '''\
"""All forms, each a test of its own."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import unittest
import warnings
from contextlib import suppress as forgive
from unittest import mock

import pytest
import pytest as pt
from pytest import raises
'''


@dataclass(frozen=True)
class Form:
    name: str
    source: str
    expected: tuple[tuple[int, bool, str, str | None], ...]
    """Line, whether it passed, its description, the beginning of its reason."""
    outcome: str = ""
    """Of the episode; by default as the assertions say."""


FORMS: list[Form] = []


def form(
    name: str, source: str, *expected: tuple[int, bool, str, str | None], outcome: str = ""
) -> None:
    text = dedent(source).strip("\n").replace("FORM", name)
    expected = tuple(
        (line, passed, said.replace("FORM", name), reason and reason.replace("FORM", name))
        for line, passed, said, reason in expected
    )
    by_default = "passed" if all(passed for _, passed, _, _ in expected) else "failed"
    FORMS.append(Form(name, text, expected, outcome or by_default))


def whole_file() -> tuple[str, dict[str, int]]:
    """Return the evaluation that holds them all, and the line on which each begins."""
    text, lines = PREAMBLE, {}
    for each in FORMS:
        text += "\n\n"
        lines[each.name] = text.count("\n") + 1
        text += each.source + "\n"
    return text, lines


form(
    "comparison",
    """
    def test_FORM():
        assert 1 + 1 == 2
        assert 1 == 2
        assert 3 > 2
    """,
    (2, True, "1 + 1 == 2", "(1 + 1) == 2"),
    (3, False, "1 == 2", "assert 1 == 2"),
    (4, True, "3 > 2", "3 > 2"),
)

form(
    "chained_comparison",
    """
    def test_FORM():
        n = 5
        assert 0 < n < 10
        assert 0 < n < 3
    """,
    (3, True, "0 < n < 10", "0 < 5 and 5 < 10"),
    (4, False, "0 < n < 3", "assert 5 < 3"),
)

form(
    "negation",
    """
    def test_FORM():
        empty = []
        assert not empty
        assert not [1]
    """,
    (3, True, "not empty", "not []"),
    (4, False, "not [1]", "assert not [1]"),
)

form(
    "membership",
    """
    def test_FORM():
        assert "b" in "abc"
        assert "b" not in "abc"
        assert "x" not in "abc"
        assert 4 in {1: 2}
    """,
    (2, True, '"b" in "abc"', "'b' in 'abc'"),
    (3, False, '"b" not in "abc"', "assert 'b' not in 'abc'\n  \n  'b' is contained here:"),
    (4, True, '"x" not in "abc"', "'x' not in 'abc'"),
    (5, False, "4 in {1: 2}", "assert 4 in {1: 2}"),
)

form(
    "and_or",
    """
    def test_FORM():
        yes, no = 1, 0
        assert yes and no
        assert no or yes
        assert (no or no) and yes
    """,
    (3, False, "yes and no", "assert (1 and 0)"),
    (4, True, "no or yes", "(0 or 1)"),
    (5, False, "(no or no) and yes", "assert ((0 or 0))"),
)

form(
    "identity",
    """
    def test_FORM():
        value = None
        assert value is None
        assert value is not None
    """,
    (3, True, "value is None", "None is None"),
    (4, False, "value is not None", "assert None is not None"),
)

form(
    "walrus",
    """
    def test_FORM():
        assert (n := len("abc")) == 3
        assert n == 4
        assert (m := n + 1) > 9
        assert m == 4
    """,
    (2, True, '(n := len("abc")) == 3', "3 == 3"),
    (3, False, "n == 4", "assert 3 == 4"),
    (4, False, "(m := n + 1) > 9", "assert 4 > 9"),
    (5, True, "m == 4", "4 == 4"),
)

form(
    "message",
    """
    def test_FORM():
        assert 1 == 2, "one is not two"
        assert 1, "fine"
    """,
    (2, False, "1 == 2", "one is not two\nassert 1 == 2"),
    (3, True, "1", "1"),
)

form(
    "message_f_string",
    """
    def test_FORM():
        name = "Ada"
        assert name == "Bob", f"it said {name!r}, {len(name):>3} letters"
    """,
    (3, False, 'name == "Bob"', "it said 'Ada',   3 letters\nassert 'Ada' == 'Bob'"),
)

form(
    "message_with_signs",
    r"""
    def test_FORM():
        assert 0, "100% {of} \n it, %s and 50%%"
    """,
    (2, False, "0", "100% {of} \n"),
)

form(
    "message_of_an_object",
    """
    def test_FORM():
        assert 0, ["a", 1]
        assert 0, None
    """,
    (2, False, "0", "['a', 1]\nassert 0"),
    (3, False, "0", "None\nassert 0"),
)

form(
    "message_evaluated_once",
    """
    def test_FORM():
        said = []
        def say(word):
            said.append(word)
            return word
        assert 1, say("passed")
        assert 0, say("failed")
        assert said == ["failed"]
    """,
    (6, True, "1", "1"),
    (7, False, "0", "failed\nassert 0"),
    (8, True, 'said == ["failed"]', "['failed'] == ['failed']"),
)

form(
    "value_evaluated_once",
    """
    def test_FORM():
        calls = []
        def call():
            calls.append(1)
            return len(calls)
        assert call() == 1
        assert call() == 5
        assert calls == [1, 1]
    """,
    (6, True, "call() == 1", "1 == 1\n +  where 1 = "),
    (7, False, "call() == 5", "assert 2 == 5\n +  where 2 = "),
    (8, True, "calls == [1, 1]", "[1, 1] == [1, 1]"),
)

form(
    "await_inside",
    """
    async def FORM_answer(value):
        await asyncio.sleep(0)
        assert value != 2
        return value

    def test_FORM():
        async def main():
            assert await FORM_answer(1) == 1
            assert (await FORM_answer(2)) == 3
        asyncio.run(main())
    """,
    (3, True, "value != 2", "1 != 2"),
    (8, True, "await FORM_answer(1) == 1", "1 == 1"),
    (3, False, "value != 2", "assert 2 != 2"),
    (9, False, "(await FORM_answer(2)) == 3", "assert 2 == 3"),
)

form(
    "async_test",
    """
    async def test_FORM():
        await asyncio.sleep(0)
        assert await asyncio.sleep(0, "x") == "y"
        results = await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0, 2))
        assert results == [1, 2]
    """,
    (3, False, 'await asyncio.sleep(0, "x") == "y"', "assert 'x' == 'y'"),
    (5, True, "results == [1, 2]", "[1, 2] == [1, 2]"),
)

form(
    "async_for_and_with",
    """
    @contextlib.asynccontextmanager
    async def FORM_open():
        assert 1 == 0
        yield 7
        assert 2 == 0

    async def FORM_count():
        for number in range(2):
            assert number != 1
            yield number

    def test_FORM():
        async def main():
            async with FORM_open() as value:
                assert value == 8
            async for number in FORM_count():
                assert number < 5
        asyncio.run(main())
    """,
    (3, False, "1 == 0", "assert 1 == 0"),
    (15, False, "value == 8", "assert 7 == 8"),
    (5, False, "2 == 0", "assert 2 == 0"),
    (9, True, "number != 1", "0 != 1"),
    (17, True, "number < 5", "0 < 5"),
    (9, False, "number != 1", "assert 1 != 1"),
    (17, True, "number < 5", "1 < 5"),
)

form(
    "nested_function",
    """
    def test_FORM():
        limit = 3
        def inner(value):
            nonlocal limit
            assert value < limit
            limit -= 1
        inner(1)
        inner(2)
        assert limit == 1
    """,
    (5, True, "value < limit", "1 < 3"),
    (5, False, "value < limit", "assert 2 < 2"),
    (9, True, "limit == 1", "1 == 1"),
)

form(
    "helper_of_the_file",
    """
    def FORM_says(text, word):
        assert word in text, f"no {word}"
        return True

    def test_FORM():
        FORM_says("hello", "he")
        FORM_says("hello", "bye")
        assert FORM_says("hello", "oh")
    """,
    (2, True, "word in text", "'he' in 'hello'"),
    (2, False, "word in text", "no bye\nassert 'bye' in 'hello'"),
    (2, False, "word in text", "no oh\nassert 'oh' in 'hello'"),
    (8, True, 'FORM_says("hello", "oh")', "True\n +  where True = "),
)

form(
    "loop",
    """
    def test_FORM():
        for number in range(3):
            assert number != 1
        else:
            assert number == 2
    """,
    (3, True, "number != 1", "0 != 1"),
    (3, False, "number != 1", "assert 1 != 1"),
    (3, True, "number != 1", "2 != 1"),
    (5, True, "number == 2", "2 == 2"),
)

form(
    "loop_with_break",
    """
    def test_FORM():
        number = 0
        while True:
            number += 1
            if number == 2:
                continue
            if number == 4:
                break
            assert number == 1
        assert number == 4
    """,
    (9, True, "number == 1", "1 == 1"),
    (9, False, "number == 1", "assert 3 == 1"),
    (10, True, "number == 4", "4 == 4"),
)

form(
    "comprehension",
    """
    def test_FORM():
        assert all(n > 0 for n in [1, 2])
        assert [n for n in range(3)] == [0, 1]
    """,
    (2, True, "all(n > 0 for n in [1, 2])", "True\n +  where True = all("),
    (3, False, "[n for n in range(3)] == [0, 1]", "assert [0, 1, 2] == [0, 1]"),
)

form(
    "comprehension_around",
    """
    def FORM_even(number):
        assert number % 2 == 0
        return number

    def test_FORM():
        assert [FORM_even(n) for n in (2, 3)] == [2, 3]
    """,
    (2, True, "number % 2 == 0", "(2 % 2) == 0"),
    (2, False, "number % 2 == 0", "assert (3 % 2) == 0"),
    (6, True, "[FORM_even(n) for n in (2, 3)] == [2, 3]", "[2, 3] == [2, 3]"),
)

form(
    "generator",
    """
    def test_FORM():
        def numbers():
            received = yield 1
            assert received == "a"
            yield 2
            assert 0, "at the end"
        steps = numbers()
        assert next(steps) == 1
        assert steps.send("b") == 2
        assert next(steps, None) is None
    """,
    (8, True, "next(steps) == 1", "1 == 1"),
    (4, False, 'received == "a"', "assert 'b' == 'a'"),
    (9, True, 'steps.send("b") == 2', "2 == 2"),
    (6, False, "0", "at the end\nassert 0"),
    (10, True, "next(steps, None) is None", "None is None"),
)

form(
    "yield_inside",
    """
    def test_FORM():
        def asked():
            assert (yield "which?") == "this"
        question = asked()
        next(question)
        with pytest.raises(StopIteration):
            question.send("that")
    """,
    (3, False, '(yield "which?") == "this"', "assert 'that' == 'this'"),
    (6, True, "pytest.raises(StopIteration)", "StopIteration"),
)

form(
    "lambda_inside",
    """
    def test_FORM():
        double = lambda n: n * 2
        assert double(2) == 5
        assert (lambda: 1)()
    """,
    (3, False, "double(2) == 5", "assert 4 == 5"),
    (4, True, "(lambda: 1)()", "1\n +  where 1 = "),
)

form(
    "approx",
    """
    def test_FORM():
        assert 0.1 + 0.2 == pytest.approx(0.3)
        assert 1.0 == pytest.approx(2.0, abs=0.1)
    """,
    (2, True, "0.1 + 0.2 == pytest.approx(0.3)", "(0.1 + 0.2) == "),
    (3, False, "1.0 == pytest.approx(2.0, abs=0.1)", "assert 1.0 == 2.0 ± "),
)

form(
    "raises",
    """
    def test_FORM():
        with pytest.raises(ValueError, match="literal") as caught:
            int("x")
        assert "x" in str(caught.value)
        assert caught.type is KeyError
    """,
    (2, True, 'pytest.raises(ValueError, match="literal")', "ValueError: invalid literal"),
    (4, True, '"x" in str(caught.value)', "'x' in"),
    (5, False, "caught.type is KeyError", "assert "),
)

form(
    "raises_nothing",
    """
    def test_FORM():
        with raises(ValueError):
            pass
        assert 1
    """,
    (2, False, "raises(ValueError)", "DID NOT RAISE"),
    (4, True, "1", "1"),
)

form(
    "raises_another_text",
    """
    def test_FORM():
        with pt.raises(ValueError, match="nothing like it"):
            int("x")
        assert 1
    """,
    (2, False, 'pt.raises(ValueError, match="nothing like it")', "Regex pattern did not match"),
    (4, True, "1", "1"),
)

form(
    "raises_another_type",
    """
    def test_FORM():
        assert 1
        with pytest.raises(KeyError):
            int("x")
    """,
    (2, True, "1", "1"),
    (3, False, "pytest.raises(KeyError)", "ValueError: invalid literal"),
    outcome="error",
)

form(
    "raises_an_assertion",
    """
    def test_FORM():
        with pytest.raises(AssertionError, match="mine"):
            assert 1
            assert 0, "mine"
        assert 1
    """,
    (3, True, "1", "1"),
    (2, True, 'pytest.raises(AssertionError, match="mine")', "AssertionError: mine"),
    (5, True, "1", "1"),
)

form(
    "raises_around_an_assert",
    """
    def test_FORM():
        with pytest.raises(ValueError):
            assert 1 == 2
            int("x")
    """,
    (3, False, "1 == 2", "assert 1 == 2"),
    (2, True, "pytest.raises(ValueError)", "ValueError: "),
)

form(
    "raises_and_return",
    """
    def test_FORM():
        def call():
            with pytest.raises(ValueError):
                return int("1")
        call()
        assert 1
    """,
    (3, False, "pytest.raises(ValueError)", "DID NOT RAISE"),
    (6, True, "1", "1"),
)

form(
    "raises_among_managers",
    """
    def test_FORM():
        with contextlib.nullcontext(3) as three, pytest.raises(
            ValueError,
        ) as caught:
            assert three == 4
            int("x")
        assert caught.value
    """,
    (5, False, "three == 4", "assert 3 == 4"),
    (2, True, "pytest.raises(ValueError,)", "ValueError: "),
    (7, True, "caught.value", "ValueError("),
)

form(
    "expectation_of_a_parameter",
    """
    @pytest.mark.parametrize(
        "text, expectation",
        [("1", contextlib.nullcontext()), ("x", pytest.raises(ValueError)),
         ("2", pytest.raises(ValueError))],
        ids=["a", "b", "c"],
    )
    def test_FORM(text, expectation):
        with expectation:
            assert int(text) == 1
    """,
    (9, True, "int(text) == 1", "1 == 1"),
    (8, True, "expectation", "ValueError: "),
    (9, False, "int(text) == 1", "assert 2 == 1"),
    (8, False, "expectation", "DID NOT RAISE"),
)

form(
    "warns",
    """
    def test_FORM():
        with pytest.warns(UserWarning):
            warnings.warn("careful", UserWarning)
        with pytest.warns(UserWarning):
            pass
        assert 1
    """,
    (2, True, "pytest.warns(UserWarning)", None),
    (4, False, "pytest.warns(UserWarning)", "DID NOT WARN"),
    (6, True, "1", "1"),
)

form(
    "suppressed",
    """
    def test_FORM():
        reached = []
        with forgive(AssertionError):
            assert 1
            assert 0
            reached.append("after")
        assert not reached
        with contextlib.suppress(KeyError):
            assert 0
            reached.append("there")
        assert reached
    """,
    (4, True, "1", "1"),
    (7, True, "not reached", "not []"),
    (9, False, "0", "assert 0"),
    (11, True, "reached", "['there']"),
)

form(
    "try_except",
    """
    def test_FORM():
        reached = []
        try:
            assert 2 == 2
            assert 1 == 2
            reached.append("after")
        except AssertionError as error:
            assert "assert 1 == 2" in str(error)
        assert not reached
    """,
    (4, True, "2 == 2", "2 == 2"),
    (8, True, '"assert 1 == 2" in str(error)', "'assert 1 == 2' in"),
    (9, True, "not reached", "not []"),
)

form(
    "try_except_of_others",
    """
    def test_FORM():
        try:
            assert 0
        except (ValueError, KeyError):
            pytest.fail("not this one")
        else:
            assert 1
    """,
    (3, False, "0", "assert 0"),
    (7, True, "1", "1"),
)

form(
    "try_except_broad",
    """
    def test_FORM():
        caught = []
        for kind in (Exception, BaseException, (KeyError, AssertionError)):
            try:
                assert 0
            except kind:
                caught.append(1)
        try:
            assert 0
        except:
            caught.append(2)
        assert caught == [1, 1, 1, 2]
    """,
    (12, True, "caught == [1, 1, 1, 2]", "[1, 1, 1, 2] == [1, 1, 1, 2]"),
)

form(
    "try_except_within",
    """
    def test_FORM():
        done = []
        try:
            try:
                assert 0
            except ValueError:
                done.append("inner")
            finally:
                done.append("finally")
        except AssertionError:
            done.append("outer")
        assert done == ["finally", "outer"]
    """,
    (12, True, 'done == ["finally", "outer"]', "['finally', 'outer'] == "),
)

form(
    "try_except_elsewhere",
    """
    def FORM_helper():
        assert 0
        return "went on"

    def test_FORM():
        try:
            assert FORM_helper() == "went on"
        except AssertionError:
            pytest.fail("the helper's assert is not handled in its own function")
    """,
    (2, False, "0", "assert 0"),
    (7, True, 'FORM_helper() == "went on"', "'went on' == 'went on'"),
)

form(
    "try_except_around_a_function",
    """
    def test_FORM():
        try:
            def inner():
                assert 0
                return "went on"
            assert inner() == "went on"
        except AssertionError:
            assert 1
    """,
    (4, False, "0", "assert 0"),
    (6, True, 'inner() == "went on"', "'went on' == 'went on'"),
)

form(
    "in_handlers",
    """
    def test_FORM():
        try:
            int("x")
        except ValueError as error:
            assert not error.args
            assert error.args
        else:
            assert 0
        finally:
            assert 1 == 3
    """,
    (5, False, "not error.args", "assert not "),
    (6, True, "error.args", '("invalid literal'),
    (10, False, "1 == 3", "assert 1 == 3"),
)

form(
    "try_finally",
    """
    def test_FORM():
        try:
            assert 0, "first"
            reached = True
        finally:
            assert reached
    """,
    (3, False, "0", "first\nassert 0"),
    (6, True, "reached", "True"),
)

form(
    "reraise",
    """
    def test_FORM():
        def call():
            try:
                int("x")
            except ValueError:
                assert 0, "in between"
                raise
        with pytest.raises(ValueError):
            call()
    """,
    (6, False, "0", "in between\nassert 0"),
    (8, True, "pytest.raises(ValueError)", "ValueError: invalid literal"),
)

form(
    "exception_group",
    """
    def test_FORM():
        seen = []
        try:
            assert 0, "grouped"
        except* AssertionError as group:
            seen = [str(error) for error in group.exceptions]
        assert seen == ["grouped\\nassert 0"]
    """,
    (7, True, 'seen == ["grouped\\nassert 0"]', "['grouped\\nassert 0'] == "),
)

form(
    "own_manager",
    """
    @contextlib.contextmanager
    def FORM_opened():
        assert 1 == 1
        try:
            yield "open"
        finally:
            assert 0 == 1

    def test_FORM():
        with FORM_opened() as state:
            assert state == "closed"
    """,
    (3, True, "1 == 1", "1 == 1"),
    (11, False, 'state == "closed"', "assert 'open' == 'closed'"),
    (7, False, "0 == 1", "assert 0 == 1"),
)

form(
    "multi_line",
    """
    def test_FORM():
        assert (
            1  # one
            +
            1
        ) == 3, (
            "sum"
        )
        assert sum(
            [
                1,  # one, too
                2,
            ],
        ) == 3
    """,
    (2, False, "(1 + 1) == 3", "sum\nassert (1 + 1) == 3"),
    (9, True, "sum([1, 2,],) == 3", "3 == 3"),
)

form(
    "multi_line_by_backslash",
    """
    def test_FORM():
        assert 1 == 1 \\
            and 2 == 3, \\
            "no"
    """,
    (2, False, "1 == 1 and 2 == 3", "no\nassert (1 == 1 and 2 == 3"),
)

form(
    "multi_line_string",
    '''
    def test_FORM():
        assert """a
          b # no comment
        """ == "a  b"
    ''',
    (2, False, '"""a b # no comment """ == "a  b"', "assert "),
)

form(
    "two_on_one_line",
    """
    def test_FORM():
        assert 0, "a"; assert 1; assert 0, "b"
    """,
    (2, False, "0", "a\nassert 0"),
    (2, True, "1", "1"),
    (2, False, "0", "b\nassert 0"),
)

form(
    "on_one_line_with_if",
    """
    def test_FORM():
        if 1: assert 0
        for _ in "ab": assert 1
    """,
    (2, False, "0", "assert 0"),
    (3, True, "1", "1"),
    (3, True, "1", "1"),
)

form(
    "match_statement",
    """
    def test_FORM():
        match {"kind": "refund", "sum": 3}:
            case {"kind": "refund", "sum": value} if value:
                assert value == 4
            case _:
                assert 0, "never"
    """,
    (4, False, "value == 4", "assert 3 == 4"),
)

form(
    "class_body",
    """
    def test_FORM():
        class Settings:
            limit = 3
            assert limit == 4
            assert limit
        assert Settings.limit == 3
    """,
    (4, False, "limit == 4", "assert 3 == 4"),
    (5, True, "limit", "3"),
    (6, True, "Settings.limit == 3", "3 == 3\n +  where 3 = "),
)

form(
    "method",
    """
    class FORM_Account:
        balance = 5
        def pay(self, amount):
            assert amount <= self.balance
        @property
        def is_open(self):
            assert self.balance == 0
            return True
        @classmethod
        def of(cls):
            assert cls
            return cls()

    def test_FORM():
        account = FORM_Account.of()
        account.pay(7)
        assert account.is_open
    """,
    (11, True, "cls", "<class "),
    (4, False, "amount <= self.balance", "assert 7 <= 5\n +  where 5 = "),
    (7, False, "self.balance == 0", "assert 5 == 0\n +  where 5 = "),
    (17, True, "account.is_open", "True\n +  where True = "),
)

form(
    "test_class",
    """
    class Test_FORM:
        def setup_method(self):
            assert 1 == 0, "in setup_method"
            self.value = 2
        def teardown_method(self):
            assert 2 == 0, "in teardown_method"
        def test_it(self):
            assert self.value == 3
    """,
    (3, False, "1 == 0", "in setup_method\nassert 1 == 0"),
    (8, False, "self.value == 3", "assert 2 == 3\n +  where 2 = "),
    (6, False, "2 == 0", "in teardown_method\nassert 2 == 0"),
)

form(
    "unittest_case",
    """
    class Test_FORM(unittest.TestCase):
        def setUp(self):
            assert 1
        def test_it(self):
            assert 1 == 2
            with self.assertRaises(ValueError):
                pass
            with self.assertRaises(AssertionError):
                assert 0
            self.assertIn("a", "bc")
            assert 0, "not reached"
    """,
    (3, True, "1", "1"),
    (5, False, "1 == 2", "assert 1 == 2"),
    (6, False, "self.assertRaises(ValueError)", "ValueError not raised"),
    (8, True, "self.assertRaises(AssertionError)", "AssertionError: assert 0"),
    (10, False, 'self.assertIn("a", "bc")', "'a' not found in 'bc'"),
)

form(
    "decorator",
    """
    def FORM_checked(function):
        @functools.wraps(function)
        def wrapper(*args):
            assert args == (3,)
            return function(*args)
        return wrapper

    @FORM_checked
    def FORM_double(number):
        assert number > 0
        return number * 2

    def test_FORM():
        assert FORM_double(2) == 4
    """,
    (4, False, "args == (3,)", "assert (2,) == (3,)"),
    (10, True, "number > 0", "2 > 0"),
    (14, True, "FORM_double(2) == 4", "4 == 4"),
)

form(
    "recursion",
    """
    def test_FORM():
        def down(number):
            assert number != 1
            return number and down(number - 1)
        assert down(2) == 0
    """,
    (3, True, "number != 1", "2 != 1"),
    (3, False, "number != 1", "assert 1 != 1"),
    (3, True, "number != 1", "0 != 1"),
    (5, True, "down(2) == 0", "0 == 0"),
)

form(
    "conditional_expression",
    """
    def test_FORM():
        rich = False
        assert 1 if rich else 0
        assert (2 if rich else 3) == 3
    """,
    (3, False, "1 if rich else 0", "assert "),
    (4, True, "(2 if rich else 3) == 3", "3 == 3"),
)

form(
    "attribute_subscript_call",
    """
    def test_FORM():
        reply = {"calls": [{"name": "search"}]}
        assert reply["calls"][0]["name"] == "refund"
        assert "abc".upper() == "ABC"
        assert reply.get("text")
        assert len(reply["calls"]) == 1
    """,
    (3, False, 'reply["calls"][0]["name"] == "refund"', "assert 'search' == 'refund'"),
    (4, True, '"abc".upper() == "ABC"', "'ABC' == 'ABC'\n +  where 'ABC' = "),
    (5, False, 'reply.get("text")', "assert None\n +  where None = "),
    (6, True, 'len(reply["calls"]) == 1', "1 == 1\n +  where 1 = len("),
)

form(
    "operators",
    """
    def test_FORM():
        a, b = 6, 3
        assert a % b
        assert -a + ~b == a << 1
        assert a // b ** 2 == 0
    """,
    (3, False, "a % b", "assert (6 % 3)"),
    (4, False, "-a + ~b == a << 1", "assert (-6 + ~3) == (6 << 1)"),
    (5, True, "a // b ** 2 == 0", "(6 // (3 ** 2)) == 0"),
)

form(
    "starred_and_keywords",
    """
    def test_FORM():
        def count(*args, **kwargs):
            return len(args) + len(kwargs)
        assert count(*[1, 2], a=1, **{"b": 2}) == 4
        assert count(*()) == 1
    """,
    (4, True, 'count(*[1, 2], a=1, **{"b": 2}) == 4', "4 == 4"),
    (5, False, "count(*()) == 1", "assert 0 == 1"),
)

form(
    "texts_compared",
    r"""
    def test_FORM():
        assert "one\ntwo" == "one\nthree"
    """,
    (2, False, r'"one\ntwo" == "one\nthree"', "assert 'one\\ntwo' == 'one\\nthree'"),
)

form(
    "collections_compared",
    """
    def test_FORM():
        assert {"a": 1, "b": 2} == {"a": 1, "b": 3}
        assert {1, 2} == {2, 1}
        assert (1, 2) == (1,)
    """,
    (
        2,
        False,
        '{"a": 1, "b": 2} == {"a": 1, "b": 3}',
        "assert {'a': 1, 'b': 2} == {'a': 1, 'b': 3}",
    ),
    (3, True, "{1, 2} == {2, 1}", "{1, 2} == {1, 2}"),
    (4, False, "(1, 2) == (1,)", "assert (1, 2) == (1,)"),
)

form(
    "values",
    """
    @dataclasses.dataclass
    class FORM_Reply:
        text: str

    def test_FORM():
        assert FORM_Reply("a") == FORM_Reply("b")
        assert FORM_Reply("a") == FORM_Reply("a")
    """,
    (
        6,
        False,
        'FORM_Reply("a") == FORM_Reply("b")',
        "assert FORM_Reply(text='a') == FORM_Reply(text='b')",
    ),
    (7, True, 'FORM_Reply("a") == FORM_Reply("a")', "FORM_Reply(text='a') == FORM_Reply(text='a')"),
)

form(
    "isinstance_call",
    """
    def test_FORM():
        assert isinstance("a", str)
        assert isinstance("a", (int, float))
    """,
    (2, True, 'isinstance("a", str)', "True\n +  where True = isinstance('a', str)"),
    (
        3,
        False,
        'isinstance("a", (int, float))',
        "assert False\n +  where False = isinstance('a', (<class 'int'>, <class 'float'>))",
    ),
)

form(
    "f_string_inside",
    """
    def test_FORM():
        name = "Ada"
        assert f"hi {name!r:>6} {1 + 1}" == "hi"
        assert f"{name}" == "Ada"
    """,
    (3, False, 'f"hi {name!r:>6} {1 + 1}" == "hi"', "assert"),
    (4, True, 'f"{name}" == "Ada"', "'Ada' == 'Ada'"),
)

form(
    "fixture",
    """
    @pytest.fixture
    def FORM_agent():
        assert 1 == 0, "early"
        yield 3
        assert 2 == 0, "late"

    def test_FORM(FORM_agent):
        assert FORM_agent == 3
    """,
    (3, False, "1 == 0", "early\nassert 1 == 0"),
    (8, True, "FORM_agent == 3", "3 == 3"),
    (5, False, "2 == 0", "late\nassert 2 == 0"),
)

form(
    "fixture_with_finalizer",
    """
    @pytest.fixture
    def FORM_resource(request):
        def close():
            assert opened == []
        opened = [1]
        request.addfinalizer(close)
        assert opened
        return opened

    def test_FORM(request):
        assert request.getfixturevalue("FORM_resource")
    """,
    (7, True, "opened", "[1]"),
    (11, True, 'request.getfixturevalue("FORM_resource")', "[1]\n +  where [1] = "),
    (4, False, "opened == []", "assert [1] == []"),
)

form(
    "parametrized",
    """
    @pytest.mark.parametrize("number", [1, 2])
    def test_FORM(number):
        assert number == 1
    """,
    (3, True, "number == 1", "1 == 1"),
    (3, False, "number == 1", "assert 2 == 1"),
)

form(
    "subtests_of_pytest",
    """
    def test_FORM(subtests):
        for number in range(2):
            with subtests.test("number", number=number):
                assert number == 0
        assert 1
    """,
    (4, True, "number == 0", "0 == 0"),
    (4, False, "number == 0", "assert 1 == 0"),
    (5, True, "1", "1"),
)

form(
    "subtests_that_fail",
    """
    def test_FORM(subtests):
        with subtests.test("quick"):
            pytest.fail("too slow")
        assert 1
    """,
    (3, False, "quick", "too slow"),
    (4, True, "1", "1"),
)

form(
    "mock",
    """
    def test_FORM():
        tool = mock.Mock()
        tool("a")
        assert tool.called
        tool.assert_called_once_with("b")
        assert 0, "not reached"
    """,
    (4, True, "tool.called", "True\n +  where True = "),
    (5, False, 'tool.assert_called_once_with("b")', "expected call not found."),
)

form(
    "raised_by_hand",
    """
    def test_FORM():
        assert 1
        if True:
            raise AssertionError("by hand")
    """,
    (2, True, "1", "1"),
    (4, False, 'raise AssertionError("by hand")', "by hand"),
)

form(
    "pytest_fail",
    """
    def test_FORM():
        assert 0
        pytest.fail("enough")
    """,
    (2, False, "0", "assert 0"),
    (3, False, 'pytest.fail("enough")', "enough"),
)

form(
    "raised_by_what_it_calls",
    """
    class FORM_Strange:
        def __eq__(self, other):
            raise AssertionError("do not compare me")
        __hash__ = None

    def test_FORM():
        assert 1
        assert FORM_Strange() == 1
        assert 0, "not reached"
    """,
    (7, True, "1", "1"),
    (3, False, 'raise AssertionError("do not compare me")', "do not compare me"),
)

form(
    "asserting_while_compared",
    """
    class FORM_Careful:
        def __eq__(self, other):
            assert isinstance(other, FORM_Careful)
            return True
        __hash__ = None

    def test_FORM():
        assert FORM_Careful() == 1
    """,
    (3, False, "isinstance(other, FORM_Careful)", "assert False\n +  where False = isinstance(1,"),
    (8, True, "FORM_Careful() == 1", "<"),
)

form(
    "error_in_the_value",
    """
    def test_FORM():
        assert 0
        assert {}["missing"] == 1
        assert 0, "not reached"
    """,
    (2, False, "0", "assert 0"),
    outcome="error",
)

form(
    "no_truth_value",
    """
    class FORM_Array:
        def __bool__(self):
            raise ValueError("ambiguous")

    def test_FORM():
        assert 1
        assert FORM_Array()
    """,
    (6, True, "1", "1"),
    outcome="error",
)

form(
    "broken_repr",
    """
    class FORM_Shy:
        def __repr__(self):
            raise RuntimeError("no")
        def __eq__(self, other):
            return other == 1
        __hash__ = None

    def test_FORM():
        assert FORM_Shy() == 1
        assert FORM_Shy() == 2
    """,
    (9, True, "FORM_Shy() == 1", "<[RuntimeError('no') raised in repr()]"),
    (10, False, "FORM_Shy() == 2", "assert <[RuntimeError('no') raised in repr()]"),
)

form(
    "own_assertion_error",
    """
    def test_FORM():
        AssertionError = ValueError
        assert 1
        with pytest.raises(ValueError):
            assert 0
    """,
    (3, True, "1", "1"),
    (4, True, "pytest.raises(ValueError)", "ValueError: assert 0"),
)

form(
    "other_scripts",
    """
    def test_FORM():
        größe = "日本語"
        assert größe == "日本"; assert größe
    """,
    (3, False, 'größe == "日本"', "assert '日本語' == '日本'"),
    (3, True, "größe", "'日本語'"),
)

form(
    "global_name",
    """
    FORM_count = 0

    def test_FORM():
        global FORM_count
        FORM_count += 1
        assert FORM_count == 2
        assert (lambda: FORM_count)() == 1
    """,
    (6, False, "FORM_count == 2", "assert 1 == 2"),
    (7, True, "(lambda: FORM_count)() == 1", "1 == 1"),
)

form(
    "local_names",
    """
    def test_FORM():
        text = "a"
        assert sorted(name for name in locals() if name[0] != "@") == ["text"]
        assert text == "b"
        del text
        assert not [name for name in locals() if name[0] != "@"]
    """,
    (
        3,
        True,
        'sorted(name for name in locals() if name[0] != "@") == ["text"]',
        "['text'] == ['text']",
    ),
    (4, False, 'text == "b"', "assert 'a' == 'b'"),
    (6, True, 'not [name for name in locals() if name[0] != "@"]', "not []"),
)

form(
    "chained_after_a_failed_one",
    """
    def test_FORM():
        reply = {"text": "", "calls": []}
        assert reply["text"]
        assert reply["calls"]
        assert not reply["calls"]
        assert reply == {"text": "", "calls": []}
    """,
    (3, False, 'reply["text"]', "assert ''"),
    (4, False, 'reply["calls"]', "assert []"),
    (5, True, 'not reply["calls"]', "not []"),
    (6, True, 'reply == {"text": "", "calls": []}', "{'"),
)

form(
    "thread",
    """
    def test_FORM():
        from threading import Thread
        def work():
            assert 1 == 2
        thread = Thread(target=work)
        thread.start()
        thread.join()
        assert 1
    """,
    (4, False, "1 == 2", "assert 1 == 2"),
    (8, True, "1", "1"),
)

form(
    "long_value",
    """
    def test_FORM():
        assert "x" * 3 == "x" + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
    """,
    (2, False, '"x" * 3 == "x" + "' + "x" * 181 + "…", "assert"),
)

form(
    "manager_by_any_name",
    """
    class FORM_Tools:
        expecting = staticmethod(pytest.raises)
        @property
        def forgiving(self):
            return contextlib.suppress(AssertionError)
    def FORM_raising():
        return pytest.raises(AssertionError)
    def test_FORM():
        R, tools = pytest.raises, FORM_Tools()
        with R(AssertionError):
            assert 0
        with FORM_raising() as info, contextlib.nullcontext():
            assert 1 == 2
        with tools.expecting(ValueError):
            pass
        with tools.forgiving:
            assert 0
        with contextlib.nullcontext(info.type) as kind:
            assert kind is AssertionError
    """,
    (10, True, "R(AssertionError)", "AssertionError: assert 0"),
    (12, True, "FORM_raising()", "AssertionError: assert 1 == 2"),
    (14, False, "tools.expecting(ValueError)", "DID NOT RAISE"),
    (19, True, "kind is AssertionError", "<class 'AssertionError'>"),
)

form(
    "nothing_asserted",
    """
    def test_FORM():
        pass
    """,
    outcome="error",
)
