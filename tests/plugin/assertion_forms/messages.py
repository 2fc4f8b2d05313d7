"""Messages behind an assertion, and how assertions lie on their lines."""

from __future__ import annotations

from tests.plugin.assertion_forms.form import form

FORMS = (
    form(
        "message",
        """
        def test_FORM():
            assert 1 == 2, "one is not two"
            assert 1, "fine"
        """,
        (2, False, "1 == 2", "one is not two\nassert 1 == 2"),
        (3, True, "1", "1"),
    ),
    form(
        "message_with_signs",
        r"""
        def test_FORM():
            assert 0, "100% {of} \n it, %s and 50%%"
        """,
        (2, False, "0", "100% {of} \n"),
    ),
    form(
        "message_of_an_object",
        """
        def test_FORM():
            assert 0, ["a", 1]
            assert 0, None
        """,
        (2, False, "0", "['a', 1]\nassert 0"),
        (3, False, "0", "None\nassert 0"),
    ),
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
    ),
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
    ),
    form(
        "multi_line_by_backslash",
        """
        def test_FORM():
            assert 1 == 1 \\
                and 2 == 3, \\
                "no"
        """,
        (2, False, "1 == 1 and 2 == 3", "no\nassert (1 == 1 and 2 == 3"),
    ),
    form(
        "multi_line_string",
        '''
        def test_FORM():
            assert """a
              b # no comment
            """ == "a  b"
        ''',
        (2, False, '"""a b # no comment """ == "a  b"', "assert "),
    ),
    form(
        "two_on_one_line",
        """
        def test_FORM():
            assert 0, "a"; assert 1; assert 0, "b"
        """,
        (2, False, "0", "a\nassert 0"),
        (2, True, "1", "1"),
        (2, False, "0", "b\nassert 0"),
    ),
)
