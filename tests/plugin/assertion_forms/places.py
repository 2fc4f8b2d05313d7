"""Where an assertion stands: functions, loops, generators, classes, threads."""

from __future__ import annotations

from tests.plugin.assertion_forms.form import form

FORMS = (
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
    form(
        "other_scripts",
        """
        def test_FORM():
            größe = "日本語"
            assert größe == "日本"; assert größe
        """,
        (3, False, 'größe == "日本"', "assert '日本語' == '日本'"),
        (3, True, "größe", "'日本語'"),
    ),
    form(
        "nothing_asserted",
        """
        def test_FORM():
            pass
        """,
        raises=True,
    ),
)
