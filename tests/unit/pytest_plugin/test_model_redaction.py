"""Contract values without secrets; those that hold none stay what they are."""

from __future__ import annotations

import pytest

from ci_agent_eval.contract.budgets import Budget, Budgets
from ci_agent_eval.contract.canonical import canonical_json
from ci_agent_eval.contract.episode import Assertion, Episode, Score
from ci_agent_eval.contract.trajectory import ToolCall, Trajectory, TrajectorySummary, Turn
from ci_agent_eval.pytest_plugin.episodes.model_redaction import redact_model
from ci_agent_eval.redaction import Redactor

SECRET = "correct-horse-battery"
REDACTOR = Redactor.of([SECRET])


def an_episode(text: str) -> Episode:
    call = ToolCall(name=text, arguments={text: [text, 1]}, result=text, error=text)
    return Episode(
        scenario_id=text,
        was=(text,),
        metadata={text: {"deep": [text, True, None]}},
        assertions=(Assertion(name=text, passed=True, reason=text),),
        scores=(Score(name=text, value=0.5),),
        budgets=Budgets(custom={text: Budget(limit=1, used=0, unit=text)}),
        trajectory=Trajectory(
            turns=(Turn(role="user", content=text), Turn(role="assistant", tool_calls=(call,)))
        ),
        trajectory_summary=TrajectorySummary(**{"more": text, f"of {text}": text}),
    )


def test_every_text_is_redacted_however_deep():
    found = canonical_json(redact_model(an_episode(SECRET), REDACTOR))
    assert SECRET not in found
    assert found == canonical_json(an_episode("[redacted]"))


def test_a_value_without_a_secret_is_the_very_same():
    episode = an_episode("nothing to hide")
    assert redact_model(episode, REDACTOR) is episode


@pytest.mark.parametrize("secret", ["required", "assistant"])
def test_words_of_the_contract_stay_whatever_the_secret_is(secret: str):
    episode = an_episode("nothing to hide")
    assert redact_model(episode, Redactor.of([secret])) is episode
