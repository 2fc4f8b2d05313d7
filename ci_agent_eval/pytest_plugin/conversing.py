"""Conversations in pytest: the fixture in place of `agent`, and what their scenarios are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.pytest_plugin import detection
from ci_agent_eval.pytest_plugin.iterations import whole_nodeid

if TYPE_CHECKING:
    from ci_agent_eval.conversations.decorator import Setting
    from ci_agent_eval.recorder import EpisodeRecorder


@pytest.fixture(name="_agent_eval_conversation")
def _conversation(request: pytest.FixtureRequest, _agent_eval_recorder: EpisodeRecorder) -> Setting:
    from ci_agent_eval.conversations.decorator import Setting  # noqa: PLC0415 - inert until used

    needs = _declared(request.node).factory.needs
    return Setting(_agent_eval_recorder, {name: request.getfixturevalue(name) for name in needs})


def scenario_of(item: pytest.Item) -> str:
    """Return the scenario of an item whose marker names none: its conversation, or its node id."""
    nodeid = whole_nodeid(item)
    if not detection.is_conversation(item):
        return nodeid
    _, found, parameters = nodeid.partition(f"::{getattr(item, 'originalname', item.name)}[")
    return f"{_declared(item).name}[{parameters}" if found else str(_declared(item).name)


def _declared(item: pytest.Item) -> Any:
    return getattr(item.obj, detection.CONVERSATION)  # type: ignore[attr-defined]  # see is_conversation
