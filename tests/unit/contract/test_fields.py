from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import NonNegativeInt, PositiveInt

from ci_agent_eval.contract.fields import (
    NonBlankText,
    NonNegativeNumber,
    Patterns,
    Seconds,
    Share,
    SomeTexts,
    TextList,
    TextMapping,
    validate_fields,
    validate_value,
)
from ci_agent_eval.errors import InputError
from tests.tables import each_row

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()


@dataclass(frozen=True, slots=True)
class Base:
    label: NonBlankText | None = None

    def __post_init__(self) -> None:
        validate_fields(self)


@dataclass(frozen=True, slots=True)
class Tool(Base):
    words: TextList = ()
    patterns: Patterns = ()
    env: TextMapping = field(default_factory=dict, repr=False)
    limits: Mapping[str, NonNegativeInt] = field(default_factory=dict)
    which: Literal["last", "every"] | PositiveInt = "last"
    reset: str | Callable[[], object] | None = None
    shared: bool = False
    parent: Base | None = None


def is_number(value):
    return type(value) is int or (type(value) is float and math.isfinite(value))


@pytest.mark.parametrize(
    ("annotation", "is_valid"),
    [
        (PositiveInt, lambda value: type(value) is int and value >= 1),
        (NonNegativeInt, lambda value: type(value) is int and value >= 0),
        (NonNegativeNumber, lambda value: is_number(value) and value >= 0),
        (Share, lambda value: is_number(value) and 0 < value <= 1),
        (Seconds, lambda value: is_number(value) and 0 < value <= 3600),
        (bool, lambda value: type(value) is bool),
        (str, lambda value: type(value) is str),
    ],
)
@given(value=SCALARS | st.integers(0, 4_000) | st.floats(0, 1))
@example(value=1)
@example(value=math.inf)
@example(value=math.nan)
def test_a_valid_value_stays_and_others_are_refused_never_converted(annotation, is_valid, value):
    if is_valid(value):
        assert validate_value("Run", "value", annotation, value) is value
    else:
        with pytest.raises(InputError, match=r"^Run\.value: (must be .*, got |is in seconds, )"):
            validate_value("Run", "value", annotation, value)


@given(value=SCALARS.filter(lambda value: not isinstance(value, str)), name=st.text(min_size=1))
def test_no_error_quotes_a_value_that_the_repr_leaves_out(value, name):
    with pytest.raises(InputError) as raised:
        Tool(env={name: ["s3cr3t", value]})
    assert "s3cr3t" not in str(raised.value)


@each_row(
    ("values", "sentence"),
    [
        ({"label": " \n"}, "label: must be a text that is not empty, got ' \\n'"),
        ({"label": "a\0"}, "label: must be a text that is not empty, got 'a\\x00'"),
        ({"words": "abc"}, "words: must be a list of texts, got 'abc'"),
        ({"words": {"a": 1}}, "words: must be a list of texts, got a value of type dict"),
        ({"words": ["a", "\0"]}, "words: must not contain a NUL character"),
        ({"patterns": 3}, "patterns: must be one or more regular expressions, got 3"),
        (
            {"patterns": ["a", "("]},
            "patterns: '(' is not a regular expression: missing ), unterminated subpattern at position 0",
        ),
        ({"env": ["A=1"]}, "env: must be a mapping, got a value of type list"),
        ({"env": {"A": None}}, "env['A']: must be a text, got a value of type NoneType"),
        ({"env": {"A": "s3cr3t\0"}}, "env['A']: must not contain a NUL character"),
        ({"env": {"": "x"}}, "env['']: must be a text that is not empty, got a value of type str"),
        ({"limits": {"a": -1}}, "limits['a']: must be a whole number of at least 0, got -1"),
        ({"limits": {3: 1}}, "limits[3]: must be a text, got 3"),
        ({"which": 0}, "which: must be last, every or a whole number of at least 1, got 0"),
        ({"reset": 3}, "reset: must be a text or a function, got 3"),
        ({"shared": 1}, "shared: must be true or false, got 1"),
        ({"parent": "x"}, "parent: must be an instance of Base, got 'x'"),
    ],
)
def test_an_error_names_the_field_the_requirement_and_the_value(values, sentence):
    with pytest.raises(InputError, match=f"^{re.escape(f'Tool.{sentence}')}$"):
        Tool(**values)


def test_values_are_normalized():
    env, limits = {"A": "1"}, {"a": 1}
    tool = Tool(words=["a", ""], patterns="a+", env=env, limits=limits)
    assert tool.words == ("a", "")
    assert tool.patterns == (re.compile("a+"),)
    env["A"] = limits["a"] = 3
    assert (tool.env, tool.limits) == ({"A": "1"}, {"a": 1})
    assert dataclasses.replace(tool) == tool
    assert validate_value("Run", "tools", SomeTexts, "find") == ("find",)
