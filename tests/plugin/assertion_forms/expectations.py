"""Managers that expect an exception or a warning."""

from __future__ import annotations

from tests.plugin.assertion_forms.form import form

FORMS = (
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
    ),
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
    ),
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
    ),
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
        raises=True,
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
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
    ),
)
