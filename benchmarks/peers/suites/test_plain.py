"""Plain pytest, and pytest-xdist: PydanticAI's own synchronous call, on its one loop."""

from __future__ import annotations

import pytest
from agent import build_agent
from work import NUMBERS, answer_of, prompt_of

AGENT = build_agent()


@pytest.mark.parametrize("number", NUMBERS)
def test_episode(number: int) -> None:
    assert AGENT.run_sync(prompt_of(number)).output == answer_of(number)
