"""Conversations in pytest: the fixture that replaces `agent`, and scenario names."""

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

    conversation = ConversationContext(_agent_eval_recorder)
    yield conversation
    if conversation.cleanup_errors and _was_interrupted(request.node):
        # After Ctrl-C an exception in a teardown would end pytest itself.
        errors = "; ".join(
            f"{type(error).__name__}: {error}" for error in conversation.cleanup_errors
        )
        if request.config.pluginmanager.hasplugin("terminalreporter"):
            request.config.get_terminal_writer().line(
                make_printable(f"{request.node.nodeid}: cleaning up the agent failed: {errors}")
            )
    elif len(conversation.cleanup_errors) > 1:
        raise ExceptionGroup("cleaning up the agents failed", conversation.cleanup_errors)
    elif conversation.cleanup_errors:
        raise conversation.cleanup_errors[0]


def _was_interrupted(item: pytest.Item) -> bool:
    """Return whether the test has no ending, not even a failed one."""
    return item.stash[detection.EPISODE].final_episode is None


def get_default_scenario(item: pytest.Item) -> str:
    """Return the scenario of an item whose marker names none: its conversation or node id."""
    nodeid = get_base_nodeid(item)
    if not detection.is_conversation(item):
        return nodeid
    _, found, parameters = nodeid.partition(f"::{getattr(item, 'originalname', item.name)}[")
    return (
        f"{_get_declaration(item).name}[{parameters}" if found else str(_get_declaration(item).name)
    )


def _get_declaration(item: pytest.Item) -> Any:
    return getattr(item.obj, detection.CONVERSATION)  # type: ignore[attr-defined]  # see is_conversation
