"""What the decorators leave of a function: all of it."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys

import pytest

from ci_agent_eval.opik.decorators import llm_episode, llm_unit
from ci_agent_eval.opik.decorators.decorators import (
    LINKED_ATTRIBUTE,
    RETURNING_ATTRIBUTE,
    FallbackArguments,
    LinkedArguments,
)


def test_llm_unit_has_the_signature_it_had():
    shown = {name: p.default for name, p in inspect.signature(llm_unit).parameters.items()}
    assert list(shown.items()) == [
        ("expected_output_key", "expected_output"),
        ("input_key", "input"),
        ("metadata_key", "metadata"),
    ]


def test_llm_episode_has_the_signature_of_the_pull_request():
    shown = {name: p.default for name, p in inspect.signature(llm_episode).parameters.items()}
    assert list(shown.items()) == [
        ("scenario_id_key", "scenario_id"),
        ("thread_id_key", "thread_id"),
        ("expected_output_key", "expected_output"),
        ("input_key", "input"),
        ("metadata_key", "metadata"),
    ]


def test_llm_unit_returns_the_very_function():
    def test(a, b=1):
        return a + b

    assert llm_unit()(test) is test
    assert llm_unit(test) is test
    assert test(1) == 2
    assert getattr(test, LINKED_ATTRIBUTE) == LinkedArguments(
        "input", "expected_output", "metadata"
    )


def test_llm_episode_keeps_name_signature_and_marks():
    @pytest.mark.parametrize("a", [1])
    def test_it(a, *, b: int = 2):
        """Say it."""
        return a, b

    wrapped = llm_episode("name", "thread")(test_it)
    assert inspect.signature(wrapped) == inspect.signature(test_it)
    assert (wrapped.__name__, wrapped.__doc__) == ("test_it", "Say it.")
    assert wrapped.pytestmark == test_it.pytestmark
    assert getattr(wrapped, RETURNING_ATTRIBUTE) == FallbackArguments("name", "thread")
    assert wrapped(1, b=3) == (1, 3)


def test_methods_of_a_class_and_static_ones_stay_what_they_are():
    class Group:
        @llm_episode()
        @staticmethod
        def static(a):
            return a

        @llm_episode()
        @classmethod
        def of_class(cls, a):
            return cls, a

        @llm_unit()
        @staticmethod
        def unit():
            return 1

    assert Group().static(1) == 1
    assert Group().of_class(1) == (Group, 1)
    assert Group.unit() == 1
    assert hasattr(Group().static, RETURNING_ATTRIBUTE)
    assert hasattr(Group().of_class, RETURNING_ATTRIBUTE)
    assert hasattr(Group.unit, LINKED_ATTRIBUTE)


def test_a_decorator_on_top_keeps_what_was_said():
    def on_top(test):
        @functools.wraps(test)
        def wrapper(*args):
            return test(*args)

        return wrapper

    assert hasattr(on_top(llm_unit()(lambda: None)), LINKED_ATTRIBUTE)


def test_importing_them_brings_no_more_than_python():
    code = (
        "import sys; from ci_agent_eval import llm_unit, llm_episode; llm_unit()(lambda: 0); "
        "print({'pytest', 'pydantic', 'sqlite3', 'opik'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
