"""A trace as a regression test: a test file that people edit, and its cassette."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ci_agent_eval.app.trace_import.literals import format_literal
from ci_agent_eval.app.trace_import.traces import ProductionTrace
from ci_agent_eval.contract.trajectory import Trajectory, Turn
from ci_agent_eval.engine.cassette.document import Cassette, Take
from ci_agent_eval.engine.cassette.files import FOLDER, build_cassette_path, store_take
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.message_logs import (
    LoggedCall,
    build_log_trajectory,
    replay_log,
)
from ci_agent_eval.storage.regular_file import replace_file

_MEASURED = ("latency_ms", "first_byte_ms")
"""Times in a cassette, which a log does not have."""
_MAX_SHOWN = 300
"""Characters of a recorded answer that the test file shows."""


@dataclass(frozen=True, slots=True)
class _SentMessage:
    """A message of the user, and the requests that answered it."""

    text: str
    requests: int
    answer: str


@dataclass(frozen=True, slots=True)
class RegressionTest:
    """The text of a test file, and its recording."""

    scenario: str
    text: str
    take: Take


def build_regression_test(trace: ProductionTrace) -> RegressionTest:
    """Build the test of a trace. Raises InputError if no message of the user begins it."""
    trajectory, numbers = build_log_trajectory(trace.calls, lambda _: None)
    messages = list(_split_at_messages(trajectory, numbers, trace.id))
    answered = {n for n, t in zip(numbers, trajectory.turns, strict=True) if t.role == "assistant"}
    calls = [call for number, call in enumerate(trace.calls, 1) if number in answered]
    scenario = f"trace {trace.id}"
    text = "".join(_render_test(trace, scenario, trajectory, messages))
    return RegressionTest(scenario, text, _record_take(scenario, calls))


def write_regression_test(test: RegressionTest, path: Path) -> Path:
    """Write the test file and its cassette; return the path of the cassette.

    Raises InputError if one of them exists: it may have been edited.
    """
    cassette = build_cassette_path(path.parent / FOLDER, test.scenario)
    for known in (path, cassette):
        if known.exists():
            raise InputError(f"{known} exists; delete it, or choose another name")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        store_take(cassette, test.scenario, 1, test.take)
        with replace_file(path) as file:
            file.write(test.text)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    return cassette


def _split_at_messages(
    trajectory: Trajectory, numbers: Sequence[int], name: str
) -> Iterator[_SentMessage]:
    """Yield the messages of the user; those without an answer between them are one message."""
    messages: list[str] = []
    answers: list[Turn] = []
    seen: set[int] = set()
    for turn, number in zip(trajectory.turns, numbers, strict=True):
        if turn.role == "user" and answers:
            yield _build_message(messages, answers, seen)
            messages, answers, seen = [], [], set()
        if turn.role == "user":
            messages.append(turn.content)
        elif turn.role == "assistant":
            if not messages:
                raise InputError(
                    f"trace {name} begins without a message of the user, which a test needs to send"
                )
            answers.append(turn)
            seen.add(number)
    if not answers:
        raise InputError(f"trace {name} has no answer of a model; choose another trace")
    yield _build_message(messages, answers, seen)


def _build_message(
    messages: Sequence[str], answers: Sequence[Turn], seen: set[int]
) -> _SentMessage:
    return _SentMessage("\n\n".join(messages), len(seen), answers[-1].content)


def _record_take(scenario: str, calls: Sequence[LoggedCall]) -> Take:
    """Return the calls as the exchanges of a cassette. The calls are redacted already."""
    session = CassetteSession(Cassette(scenario), "record", lambda value: value)
    replay_log(calls, session.player)
    if session.refusals or session.take is None:
        raise InputError(f"{scenario} cannot be recorded: {'; '.join(session.refusals)}")
    return tuple(
        replace(exchange, response=_set_latency(exchange.response, call.latency_ms))
        for exchange, call in zip(session.take, calls, strict=True)
    )


def _set_latency(response: dict[str, Any], latency_ms: float | None) -> dict[str, Any]:
    kept = {name: value for name, value in response.items() if name not in _MEASURED}
    return kept if latency_ms is None else {**kept, "latency_ms": latency_ms}


def _render_test(
    trace: ProductionTrace, scenario: str, trajectory: Trajectory, messages: Sequence[_SentMessage]
) -> Iterator[str]:
    calls = [(call.name, call.arguments) for call in trajectory.tool_calls()]
    limits = {"max_turns": len(trajectory.agent_turns), "tool_calls": len(calls)}
    yield _HEAD.format(
        name=re.sub(r"[^\w.\[\]-]+", "_", trace.id, flags=re.ASCII),
        requests=[message.requests for message in messages],
        limits=format_literal(limits),
        scenario=format_literal(scenario),
        function=re.sub(r"\W+", "_", trace.id, flags=re.ASCII).strip("_").lower() or "import",
    )
    for message in messages:
        yield f"    reply = agent.send({format_literal(message.text)})\n"
        yield from _comment_answer(message.answer)
        yield "    assert reply.content\n"
    yield f"    check(TrajectoryMatch({format_literal(calls, 4)}))\n"


def _comment_answer(text: str) -> Iterator[str]:
    """Yield the recorded answer as comments: escaped, so that no character ends the line."""
    shown = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
    yield "    # The answer in the trace, and a place to assert what a right answer must hold:\n"
    yield f"    #   {format_literal(shown)}\n"


_HEAD = '''"""Regression test of the trace {name}, written by `agent-eval import`.

Run it without a model: agent-eval run THIS_FILE -- --cassette=replay
"""

import pytest

from ci_agent_eval import check, conversation
from ci_agent_eval.checks import TrajectoryMatch
from ci_agent_eval.engine import RecordedAgent


def create_agent():
    # Return your agent here: RecordedAgent only repeats the requests of the trace.
    return RecordedAgent(requests_per_message={requests})


@pytest.mark.episode(budgets={limits})
@conversation({scenario}, create_agent)
def test_trace_{function}(agent):
'''
