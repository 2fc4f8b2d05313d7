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
