"""Changes of what the agent spends: ten times the cost, tokens, latency, calls or turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ci_agent_eval.analysis.mutations.calls import copy_call
from ci_agent_eval.analysis.mutations.recorded_transcript import (
    Mutant,
    RecordedTranscript,
    build_mutant,
)
from ci_agent_eval.contract.mutations import Mutation
from ci_agent_eval.contract.trajectory import TokenUsage, Turn

FACTOR = 10
_MOST_REPEATS = 200
"""Repeated calls or turns at most: a long recording would become a huge one."""


def exceed_budgets(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript with ten times the amount of each kind of budget that it uses."""
    for budget, spend_more in _KINDS.items():
        changed = spend_more(recorded)
        if changed != recorded:
            mutation = Mutation(kind="exceed_budget", budget=budget)
            yield build_mutant(mutation, changed)


def _scale_turns(
    scale: Callable[[Turn], Turn],
) -> Callable[[RecordedTranscript], RecordedTranscript]:
    """Return a function that scales every turn of the agent."""

    def spend_more(recorded: RecordedTranscript) -> RecordedTranscript:
        turns = tuple(scale(t) if t.role == "assistant" else t for t in recorded.turns)
        return RecordedTranscript(recorded.trajectory.model_copy(update={"turns": turns}))

    return spend_more


def _scale_cost(turn: Turn) -> Turn:
    cost = turn.cost_usd
    return turn if cost is None else turn.model_copy(update={"cost_usd": cost * FACTOR})


def _scale_latency(turn: Turn) -> Turn:
    latency = turn.latency_ms
    return turn if latency is None else turn.model_copy(update={"latency_ms": latency * FACTOR})


def _scale_tokens(turn: Turn) -> Turn:
    if turn.tokens is None:
        return turn
    counts = {name: count and count * FACTOR for name, count in turn.tokens}
    return turn.model_copy(update={"tokens": TokenUsage(**counts)})


def _repeat_last_call(recorded: RecordedTranscript) -> RecordedTranscript:
    if not recorded.calls:
        return recorded
    last = recorded.calls[-1]
    repeats = min(len(recorded.calls) * (FACTOR - 1), _MOST_REPEATS)
    copies = [copy_call(last.call, number + 2) for number in range(repeats)]
    return recorded.replace_call(last, last.call, *copies)


def _repeat_calling_turn(recorded: RecordedTranscript) -> RecordedTranscript:
    """Repeat a turn that only calls tools: an agent with one turn for each answer has none."""
    turns = [n for n, t in enumerate(recorded.turns) if t.tool_calls and _is_followed(recorded, n)]
    if not turns:
        return recorded
    repeats = min(len(recorded.trajectory.agent_turns) * (FACTOR - 1), _MOST_REPEATS)
    turn = recorded.turns[turns[-1]]
    copies = [
        turn.model_copy(
            update={"tool_calls": tuple(copy_call(call, n + 2) for call in turn.tool_calls)}
        )
        for n in range(repeats)
    ]
    place = turns[-1] + 1
    together = (*recorded.turns[:place], *copies, *recorded.turns[place:])
    return RecordedTranscript(recorded.trajectory.model_copy(update={"turns": together}))


def _is_followed(recorded: RecordedTranscript, turn: int) -> bool:
    """Return whether another turn of the agent follows in the same exchange."""
    exchange = next(turns for turns in recorded.exchanges if turn in turns)
    return any(t > turn and recorded.turns[t].role == "assistant" for t in exchange)


_KINDS: dict[str, Callable[[RecordedTranscript], RecordedTranscript]] = {
    "max_turns": _repeat_calling_turn,
    "tool_calls": _repeat_last_call,
    "latency_ms": _scale_turns(_scale_latency),
    "token_usage": _scale_turns(_scale_tokens),
    "cost_usd": _scale_turns(_scale_cost),
}
"""How an agent spends more of each kind of budget (`contract/budget_kinds.py`)."""
