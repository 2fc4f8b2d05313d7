"""Assertions that something handles, and failures that are none."""

from __future__ import annotations

from tests.plugin.assertion_forms.form import form

FORMS = (
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
    form(
        "pytest_fail",
        """
        def test_FORM():
            assert 0
            pytest.fail("enough")
        """,
        (2, False, "0", "assert 0"),
        (3, False, 'pytest.fail("enough")', "enough"),
    ),
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
    ),
)
