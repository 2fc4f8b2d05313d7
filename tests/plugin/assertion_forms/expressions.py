"""What is asserted: every kind of expression."""

from __future__ import annotations

from tests.plugin.assertion_forms.form import form

FORMS = (
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
    form(
        "comprehension",
        """
        def test_FORM():
            assert all(n > 0 for n in [1, 2])
            assert [n for n in range(3)] == [0, 1]
        """,
        (2, True, "all(n > 0 for n in [1, 2])", "True\n +  where True = all("),
        (3, False, "[n for n in range(3)] == [0, 1]", "assert [0, 1, 2] == [0, 1]"),
    ),
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
    ),
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
    ),
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
    ),
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
    ),
    form(
        "approx",
        """
        def test_FORM():
            assert 0.1 + 0.2 == pytest.approx(0.3)
            assert 1.0 == pytest.approx(2.0, abs=0.1)
        """,
        (2, True, "0.1 + 0.2 == pytest.approx(0.3)", "(0.1 + 0.2) == "),
        (3, False, "1.0 == pytest.approx(2.0, abs=0.1)", "assert 1.0 == 2.0 ± "),
    ),
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
    ),
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
    ),
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
    ),
)
