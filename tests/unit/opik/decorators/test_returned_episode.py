"""Anything that a test may return, read as an episode."""

from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import pytest

from ci_agent_eval.contract.episode import Episode
from ci_agent_eval.errors import InputError
from ci_agent_eval.opik.decorators.returned_episode import as_episode

FIELDS = {"scenario_id": "s", "assertions": [{"name": "a", "passed": True}]}


@dataclasses.dataclass
class Check:
    name: str
    passed: bool


@dataclasses.dataclass
class Data:
    scenario_id: str
    assertions: list[Check]


class WithDict:
    def to_dict(self):
        return FIELDS


@pytest.mark.parametrize(
    "value",
    [
        FIELDS,
        json.dumps(FIELDS),
        json.dumps(FIELDS).encode(),
        Episode.model_validate(FIELDS),
        Data("s", [Check("a", True)]),
        {"scenario_id": "s", "assertions": [Check("a", True)]},
        WithDict(),
        SimpleNamespace(scenario_id="s", assertions=[{"name": "a", "passed": True}]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_form_is_the_same_episode(value):
    episode = as_episode(value, scenario_id="other")
    assert (episode.scenario_id, episode.outcome) == ("s", "passed")
    assert [(a.name, a.passed, a.score) for a in episode.assertions] == [("a", True, 1.0)]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        (None, "returned nothing"),
        (5, "no episode but 'int'"),
        ([], "no episode but 'list'"),
        (Data, "no episode but 'type'"),
        (object(), "no episode but 'object'"),
        ("[]", "is not an object"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ({"scenario": "x"}, "unknown key 'scenario'; did you mean 'scenario_id'?"),
        ({"budgets": {"max_turn": 5}}, "unknown key 'max_turn'; did you mean 'max_turns'?"),
        ({"assertions": [{"name": "a", "passed": "no way"}]}, "assertions.0.passed: "),
    ],
)
def test_what_is_none_is_said_in_one_sentence(value, sentence):
    with pytest.raises(InputError) as raised:
        as_episode(value, scenario_id="s")
    assert sentence in str(raised.value)
    assert "\n" not in str(raised.value)


async def _forgotten():
    pass


def test_a_coroutine_that_was_not_awaited_is_closed():
    with pytest.raises(InputError, match="no episode but 'coroutine'"):
        as_episode(_forgotten(), scenario_id="s")  # else Python warns, which fails this test
