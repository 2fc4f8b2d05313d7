"""Fixtures, parameters, subtests and mocks around an assertion."""

from __future__ import annotations

from tests.plugin.assertion_forms.form import form

FORMS = (
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
    ),
    form(
        "parametrized",
        """
        @pytest.mark.parametrize("number", [1, 2])
        def test_FORM(number):
            assert number == 1
        """,
        (3, True, "number == 1", "1 == 1"),
        (3, False, "number == 1", "assert 2 == 1"),
    ),
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
    ),
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
    ),
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
    ),
)
