"""How pytest explains values, and what comes of values that resist."""

from __future__ import annotations

from tests.plugin.assertion_forms.form import form

FORMS = (
    form(
        "words_of_the_agent",
        """
        def test_FORM():
            assert "pick {2, 1}" == "pick {1, 2}"
            assert {2, 1} == {3}, "pick {2, 1}"
        """,
        (2, False, '"pick {2, 1}" == "pick {1, 2}"', "assert 'pick {2, 1}' == 'pick {1, 2}'"),
        (3, False, "{2, 1} == {3}", "pick {2, 1}"),
    ),
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
    ),
    form(
        "long_value",
        """
        def test_FORM():
            assert "x" * 3 == "x" + "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        """,
        (2, False, '"x" * 3 == "x" + "' + "x" * 181 + "…", "assert"),
    ),
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
    ),
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
        raises=True,
    ),
    form(
        "error_in_the_value",
        """
        def test_FORM():
            assert 0
            assert {}["missing"] == 1
            assert 0, "not reached"
        """,
        (2, False, "0", "assert 0"),
        raises=True,
    ),
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
        (
            3,
            False,
            "isinstance(other, FORM_Careful)",
            "assert False\n +  where False = isinstance(1,",
        ),
        (8, True, "FORM_Careful() == 1", "<"),
    ),
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
    ),
)
