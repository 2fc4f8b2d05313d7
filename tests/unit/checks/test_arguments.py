from __future__ import annotations

import pytest

from ci_agent_eval.checks import ArgumentsHold
from ci_agent_eval.checks.arguments import arguments_match
from ci_agent_eval.errors import InputError
from tests.builders import calling, tool_call
from tests.tables import each_row


def refund(**arguments):
    return tool_call("refund", arguments=arguments)


def of(check, *calls):
    (found,) = check.assertions(calling(*calls))
    return found.passed, found.score, found.reason


@each_row(
    ("given_", "reference", "rule", "fit"),
    [
        ({"a": 1}, {"a": 1.0}, "exact", True),
        ({"a": True}, {"a": 1}, "exact", False),
        ({"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, "exact", True),
        ({"a": [1, 2]}, {"a": [2, 1]}, "exact", False),
        ({"a": 1, "b": 2}, {"a": 1}, "exact", False),
        ({"a": 1, "b": 2}, {"a": 1}, "superset", True),
        ({"a": 1, "b": 2}, {"a": 1}, "subset", False),
        ({"a": 1}, {"a": 1, "b": 2}, "subset", True),
        ({"a": None}, {}, "exact", False),
        ({"a": {"x": 1, "y": 2}}, {"a": {"x": 1}}, "superset", False),  # values are whole
        (None, {}, "exact", True),  # a call without arguments
        (None, {"a": 1}, "subset", True),
        ("{broken", {"a": 1}, "exact", False),
        ("{broken", {"a": 1}, "superset", False),
        ("{broken", {"a": 1}, "ignore", True),
        ({"a": 1, "b": 9}, {"a": 1, "b": 2}, ("a",), True),
        ({"a": {"x": 1}}, {"a": {"x": 1, "y": 2}}, ("a.x",), True),
        ({"a": {"x": 1}}, {"a": {"x": 2}}, ("a.x",), False),
        ({}, {}, ("a.x",), True),
        ({"a": 5}, {"a": 4}, lambda made, wanted: made["a"] > wanted["a"], True),
        ({"a": 5}, {"a": 4}, lambda made, wanted: 0, False),
    ],
)
def test_rules(given_, reference, rule, fit):
    assert arguments_match(given_, reference, rule) is fit


@each_row(
    ("check", "calls", "said"),
    [
        (
            ArgumentsHold("refund", {"order": 1}),
            [refund(order=1, note="x"), refund(order=1)],
            (True, 1, 'in refund(order=1, note="x"), refund(order=1)'),
        ),
        (
            ArgumentsHold("refund", {"order": 1}),
            [refund(order=1), refund(order=2), "find"],
            (False, 0.5, "not in refund(order=2)"),
        ),
        (ArgumentsHold("refund", {"order": 1}, "any"), [refund(order=2), refund(order=1)], True),
        (ArgumentsHold("refund", {"order": 1}, "first"), [refund(order=2), refund(order=1)], False),
        (ArgumentsHold("refund", {"order": 1}, "last"), [refund(order=2), refund(order=1)], True),
        (ArgumentsHold("refund", {"order": 1}, "any"), [refund(order=2)], False),
        (ArgumentsHold("refund", lambda a: a["usd"] <= 100), [refund(usd=100)], True),
        (ArgumentsHold("refund", lambda a: a["usd"] <= 100), [refund(usd=101)], False),
        (ArgumentsHold("refund", lambda a: a["usd"] <= 100), [refund()], False),
        (ArgumentsHold("refund", lambda a: a["usd"] <= 100), [refund(usd="all")], False),
        (ArgumentsHold("refund", {"id": 1}), ["find"], (False, 0, "refund was never called")),
        (ArgumentsHold("refund", {"id": 1}, optional=True), ["find"], True),
    ],
)
def test_arguments_hold(check, calls, said):
    found = of(check, *calls)
    assert (found if isinstance(said, tuple) else found[0]) == said


def test_a_function_s_own_fault_is_raised_and_not_the_agent_s():
    with pytest.raises(ZeroDivisionError):
        of(ArgumentsHold("refund", lambda a: 1 / 0), refund())


def test_names():
    def are_small(arguments):
        return True

    def name(expected):
        return ArgumentsHold("refund", expected).assertions(calling(refund()))[0].name

    assert name({"order": 1, "fast": True}) == "calls refund with order=1, fast=true"
    assert name(are_small) == "calls refund with arguments that are_small"
    assert name(lambda a: True) == "calls refund with the arguments asked for"


@each_row(
    ("make", "sentence"),
    [
        (
            lambda: ArgumentsHold("x", 3),
            r"ArgumentsHold\.expected: must be a mapping or a function",
        ),
        (
            lambda: ArgumentsHold("x", {}),
            r"^ArgumentsHold\.expected: it names no value; .* use RequiredTools\('x'\)$",
        ),
        (
            lambda: ArgumentsHold("x", {"id": 1}, "all"),
            r"which: must be every, any, first or last, got 'all'",
        ),
    ],
)
def test_what_means_nothing_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
