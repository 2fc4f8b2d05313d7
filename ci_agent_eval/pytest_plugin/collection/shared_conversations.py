"""`@pytest.mark.session("name")`: the runs of several tests are one conversation.

A conversation has one process and one order. What would break it silently (a test that runs
without the tests before it, or after a run that did not finish) is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from ci_agent_eval.errors import InputError
from ci_agent_eval.pytest_plugin.collection.iterations import get_base_nodeid, get_iteration
from ci_agent_eval.pytest_plugin.options import SESSION_MARKER

if TYPE_CHECKING:
    from ci_agent_eval.engine import AgentResult

FIXTURE = "aitest_run"
"""The fixture whose runs continue the conversation."""

_CONTINUED_STOPS = frozenset({"completed", "refusal", "truncated", "empty_answer"})
"""Ends of a run that leave a conversation without open tool calls."""


@dataclass
class SharedConversation:
    """The conversation of the tests of one session, for one set of parameters and iteration."""

    name: str
    tests: list[str] = field(default_factory=list)
    """Node ids of its tests in the order of their collection."""
    results: dict[str, AgentResult] = field(default_factory=dict)
    """The last result of each test that has run, by node id."""

    def begin_test(self, test: str) -> None:
        """Forget an earlier attempt of a test, and what followed it."""
        for later in self.tests[self.tests.index(test) :]:
            self.results.pop(later, None)

    def get_messages(self, test: str) -> Sequence[Any] | None:
        """Return the messages before the next run of a test; None for the first run.

        Raises InputError if the conversation has a gap.
        """
        if test in self.results:
            return self._require_end(test)
        earlier = self.tests[: self.tests.index(test)]
        missing = [each for each in earlier if each not in self.results]
        if missing:
            raise InputError(
                f"session {self.name!r}: {missing[0]} comes before this test and did not run in "
                "this process before it; run all tests of the session in the order of the file "
                "(-p no:randomly), with xdist by --dist=loadscope or loadfile"
            )
        return self._require_end(earlier[-1]) if earlier else None

    def _require_end(self, test: str) -> Sequence[Any]:
        """Return the messages after a test. Raises InputError if its run did not finish."""
        result = self.results[test]
        if result.stop_reason not in _CONTINUED_STOPS:
            raise InputError(
                f"session {self.name!r}: the run in {test} ended with {result.stop_reason}, so the "
                "conversation cannot continue"
            )
        return result.messages


@dataclass(frozen=True)
class ConversationMember:
    """A test of a session."""

    conversation: SharedConversation
    test: str
    """Its node id."""

    def get_messages(self) -> Sequence[Any] | None:
        """Return the messages before the next run, as `SharedConversation.get_messages`."""
        return self.conversation.get_messages(self.test)

    def add_result(self, result: AgentResult) -> None:
        """Continue the conversation after this result."""
        self.conversation.results[self.test] = result


_CONVERSATIONS = pytest.StashKey[dict[tuple[str, str, int], SharedConversation]]()
MEMBER = pytest.StashKey[ConversationMember]()
"""In an item's stash: its place in a conversation."""


def join_conversation(item: pytest.Item) -> None:
    """Add a collected item to the conversation that its marker names.

    Raises pytest.UsageError for a marker without a name.
    """
    marker = item.get_closest_marker(SESSION_MARKER)
    if marker is None or FIXTURE not in getattr(item, "fixturenames", ()):
        return
    name = marker.args[0] if marker.args else marker.kwargs.get("name")
    if not isinstance(name, str) or not name.strip():
        raise pytest.UsageError(
            f"{item.nodeid}: @pytest.mark.session needs the name of the session, a text that is "
            "not empty"
        )
    base = get_base_nodeid(item)
    case = base.removeprefix(base.partition("[")[0])
    key = (name, case, get_iteration(item).number)
    conversations = item.config.stash.setdefault(_CONVERSATIONS, {})
    conversation = conversations.setdefault(key, SharedConversation(name))
    conversation.tests.append(item.nodeid)
    item.stash[MEMBER] = ConversationMember(conversation, item.nodeid)


def find_session_name(item: pytest.Item) -> str | None:
    """Return the name of the item's session; None without one."""
    member = item.stash.get(MEMBER, None)
    return None if member is None else member.conversation.name
