from __future__ import annotations

import pytest

from ci_agent_eval.checks import (
    ConfirmedTools,
    ForbiddenTools,
    OrderedTools,
    RequiredTools,
    ToolCallLimits,
)
from ci_agent_eval.contract.episode import Conditions
from ci_agent_eval.errors import InputError
from tests.builders import calling, talk
from tests.tables import each_row

SILENT = talk("hello")


def of(check, episode):
    """What an assertion says: whether it passed, its score, its name and reason."""
    (found,) = check.assertions(episode)
    return found.passed, found.score, found.name, found.reason


@each_row(
    ("check", "episode", "said"),
    [
        (
            RequiredTools(["find", "refund"]),
            calling("find", "refund"),
            (True, 1, "calls find, refund", "all of them were called"),
        ),
        (
            RequiredTools(["find", "refund"]),
            calling("find"),
            (False, 0.5, "calls find, refund", "never called: refund; it called find"),
        ),
        (
            RequiredTools("find"),
            SILENT,
            (False, 0, "calls find", "never called: find; it called no tools"),
        ),
        (
            ForbiddenTools(["drop", "wipe"]),
            calling("drop", "drop"),
            (False, 0, "never calls drop, wipe", "drop was called twice"),
        ),
        (ForbiddenTools("drop"), SILENT, (True, 1, "never calls drop", "none of them was called")),
        (
            OrderedTools(["find", "ask", "refund"]),
            calling("find", "note", "ask", "refund"),
            (True, 1, "calls find then ask then refund", "it called find, note, ask, refund"),
        ),
        (
            OrderedTools(["find", "ask"]),
            calling("ask", "find"),
            (False, 0.5, "calls find then ask", "not in its place: ask; it called ask, find"),
        ),
        (
            OrderedTools(["find", "find"]),
            calling("find"),
            (False, 0.5, "calls find then find", "not in its place: find; it called find"),
        ),
        (
            OrderedTools(["find"]),
            SILENT,
            (False, 0, "calls find", "not in its place: find; it called no tools"),
        ),
    ],
)
def test_tools(check, episode, said):
    assert of(check, episode) == said


def test_each_limit_is_an_assertion_of_its_own():
    check = ToolCallLimits(3, {"find": 1, "refund": 1, "drop": 0})
    found = check.assertions(calling("find", "find", "find", "drop"))
    assert [(a.name, a.passed, a.reason) for a in found] == [
        ("makes at most 3 tool calls", False, "called 4 times, the limit is 3"),
        ("calls find at most once", False, "called 3 times, the limit is 1"),
        ("calls refund at most once", True, "never called, the limit is 1"),
        ("never calls drop", False, "called once, the limit is 0"),
    ]
    assert [a.score for a in found] == [0.75, pytest.approx(1 / 3), 1, 0]


def test_limits_under_one_name_say_which_in_the_reason():
    total, of_find = ToolCallLimits(1, {"find": 1}, name="stays small").assertions(calling("find"))
    assert total.name == of_find.name == "stays small"
    assert of_find.reason == "calls find at most once: called once, the limit is 1"


def test_a_name_and_a_severity_of_one_s_own():
    (found,) = RequiredTools("x", name="asks x", severity="warning").assertions(SILENT)
    assert (found.name, found.severity, found.passed) == ("asks x", "warning", False)


MISSPELLED = "no tool 'tranfer' was offered or called; did you mean 'transfer'?"


@each_row(
    ("check", "said"),
    [
        (ForbiddenTools("tranfer"), (False, MISSPELLED)),
        (ToolCallLimits(None, {"tranfer": 0}), (False, MISSPELLED)),
        (ConfirmedTools("tranfer", said="yes"), (False, MISSPELLED)),
        (RequiredTools("tranfer"), (False, f"never called: tranfer; it called find; {MISSPELLED}")),
        (ForbiddenTools("wipe"), (True, "none of them was called; not offered: wipe")),
        (ForbiddenTools("set_user"), (True, "none of them was called; not offered: set_user")),
        (ForbiddenTools("transfer"), (True, "none of them was called")),
    ],
)
def test_a_misspelled_name_does_not_pass(check, said):
    offered = Conditions(tools=("find", "get_user", "transfer"))
    (found,) = check.assertions(calling("find").model_copy(update={"conditions": offered}))
    assert (found.passed, found.reason) == said
    (unknown,) = check.assertions(calling("find"))
    assert unknown.passed is not isinstance(check, RequiredTools)


def test_a_long_list_is_cut_and_counted():
    reason = of(RequiredTools([f"t{n}" for n in range(9)]), SILENT)[3]
    assert reason == "never called: t0, t1, t2, t3, t4 and 4 more; it called no tools"


@each_row(
    ("make", "sentence"),
    [
        (lambda: RequiredTools([]), r"RequiredTools\.tools: must be one or more texts"),
        (lambda: ForbiddenTools([]), r"ForbiddenTools\.tools: must be one or more texts"),
        (lambda: OrderedTools([]), r"OrderedTools\.tools: must be one or more texts"),
        (ToolCallLimits, "ToolCallLimits: it is given nothing to check"),
        (lambda: RequiredTools([1]), r"RequiredTools\.tools: must be one or more texts"),
        (lambda: RequiredTools(5), r"RequiredTools\.tools: must be one or more texts"),
        (lambda: RequiredTools({"a": 1}), r"RequiredTools\.tools: must be one or more texts"),
        (
            lambda: ToolCallLimits(-1),
            r"ToolCallLimits\.total: must be a whole number of at least 0",
        ),
        (lambda: ToolCallLimits(True), r"ToolCallLimits\.total: must be a whole number"),
        (lambda: ToolCallLimits(per_tool={"x": 1.5}), r"per_tool\['x'\]: must be a whole"),
    ],
)
def test_what_means_nothing_is_refused_when_it_is_made(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
