from __future__ import annotations

import re

import pytest

from ci_agent_eval.checks import ForbiddenText, RequiredText
from ci_agent_eval.errors import InputError
from tests.builders import talk, turn
from tests.tables import each_row

SAID = talk("Where is my order?", turn("Let me look."), turn("Order ORD-1001 is on its way."))


def of(check, episode):
    (found,) = check.assertions(episode)
    return found.passed, found.score, found.reason


@each_row(
    ("check", "passed", "score", "reason"),
    [
        (RequiredText("on its way"), True, 1, "the agent wrote it"),
        (RequiredText("On Its Way"), False, 0, "not found: 'On Its Way'"),
        (RequiredText("On Its Way", ignore_case=True), True, 1, "the agent wrote it"),
        (RequiredText(patterns=r"\bORD-\d+\b"), True, 1, "the agent wrote it"),
        (RequiredText(patterns=re.compile("ord-", re.IGNORECASE)), True, 1, "the agent wrote it"),
        (
            RequiredText(["look", "sorry"], [r"ORD-\d", "z+"]),
            False,
            0.5,
            "not found: 'sorry', /z+/",
        ),
        (RequiredText("Where is my order?"), False, 0, "not found: 'Where is my order?'"),
        (RequiredText("O.D"), False, 0, "not found: 'O.D'"),
        (ForbiddenText("refund"), True, 1, "the agent wrote none of it"),
        (ForbiddenText("Where"), True, 1, "the agent wrote none of it"),
        (
            ForbiddenText(patterns=r"ORD-\d+"),
            False,
            0,
            "turn 2 of the agent has /ORD-\\d+/: Order ORD-1001 is on its way.",
        ),
        (
            ForbiddenText("look", ["let"], ignore_case=True),
            False,
            0,
            (
                "turn 1 of the agent has 'look': Let me look.; turn 1 of the agent has /let/: "
                "Let me look."
            ),
        ),
    ],
)
def test_texts(check, passed, score, reason):
    assert of(check, SAID) == (passed, score, reason)


def test_names():
    (found,) = RequiredText(["a", "b"], "c+").assertions(SAID)
    assert found.name == "says 'a', 'b', /c+/"
    (found,) = ForbiddenText("a").assertions(SAID)
    assert found.name == "never says 'a'"


def test_an_agent_that_wrote_nothing_is_told_so():
    assert of(RequiredText("x"), talk("hello")) == (False, 0, "the agent wrote nothing")


def test_a_find_in_a_long_text_is_shown_with_what_is_around_it():
    found = of(ForbiddenText("needle"), talk("?", turn("hay " * 500 + "needle" + " hay" * 500)))
    assert found[2].startswith("turn 1 of the agent has 'needle': …hay")
    assert "needle hay" in found[2]
    assert len(found[2]) < 200


@each_row(
    ("make", "sentence"),
    [
        (RequiredText, "RequiredText: it is given nothing to check"),
        (lambda: ForbiddenText(patterns="("), r"ForbiddenText\.patterns: '\(' is not a regular"),
        (
            lambda: ForbiddenText(patterns=b"x"),
            r"ForbiddenText\.patterns: must be one or more regular",
        ),
        (
            lambda: ForbiddenText(patterns=3),
            r"ForbiddenText\.patterns: must be one or more regular",
        ),
        (lambda: ForbiddenText(""), r"ForbiddenText\.texts: must be one or more texts"),
    ],
)
def test_what_means_nothing_is_refused(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()
