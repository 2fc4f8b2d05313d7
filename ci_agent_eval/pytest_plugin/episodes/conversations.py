"""Conversations in pytest: the fixture in place of `agent`, and what their scenarios are called."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.contract.wording import make_printable
from ci_agent_eval.pytest_plugin.collection import detection
from ci_agent_eval.pytest_plugin.collection.iterations import get_base_nodeid

if TYPE_CHECKING:
    from ci_agent_eval.authoring.conversations.runner import ConversationContext
    from ci_agent_eval.recording import EpisodeRecorder


@pytest.fixture(name="_agent_eval_conversation")
def _conversation_fixture(
    request: pytest.FixtureRequest, _agent_eval_recorder: EpisodeRecorder
) -> Generator[ConversationContext, None, None]:
    from ci_agent_eval.authoring.conversations.runner import ConversationContext  # noqa: PLC0415 - inert until used

    setting = ConversationContext(_agent_eval_recorder)
    yield setting
    if setting.cleanup_errors and _was_interrupted(request.node):
        # pytest tears down after Ctrl-C on its way out, where an exception would be its own end.
        said = "; ".join(f"{type(error).__name__}: {error}" for error in setting.cleanup_errors)
        request.config.get_terminal_writer().line(
            make_printable(f"{request.node.nodeid}: cleaning up the agent failed: {said}")
        )
    elif len(setting.cleanup_errors) > 1:
        raise ExceptionGroup("cleaning up the agents failed", setting.cleanup_errors)
    elif setting.cleanup_errors:
        raise setting.cleanup_errors[0]


def _was_interrupted(item: pytest.Item) -> bool:
    """Say whether the test never came to an end, not even a bad one."""
    return item.stash[detection.EPISODE].ended is None


def get_default_scenario(item: pytest.Item) -> str:
    """Return the scenario of an item whose marker names none: its conversation, or its node id."""
    nodeid = get_base_nodeid(item)
    if not detection.is_conversation(item):
        return nodeid
    _, found, parameters = nodeid.partition(f"::{getattr(item, 'originalname', item.name)}[")
    return (
        f"{_get_declaration(item).name}[{parameters}" if found else str(_get_declaration(item).name)
    )


def _get_declaration(item: pytest.Item) -> Any:
    return getattr(item.obj, detection.CONVERSATION)  # type: ignore[attr-defined]  # see is_conversation
