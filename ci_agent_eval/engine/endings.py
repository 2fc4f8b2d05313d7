"""Every way a run can end, and whose doing it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.contract.episode import Outcome, StopReason

Blame = Literal["nobody", "agent", "world"]


@dataclass(frozen=True, slots=True)
class Ending:
    """Whose doing an ending is, and why it is counted so."""

    blame: Blame
    why: str


ENDINGS: Mapping[StopReason, Ending] = {
    "completed": Ending("nobody", "the model answered and asked for no more tools"),
    "max_turns": Ending("agent", "it was given its turns and was not done"),
    "tool_call_limit": Ending(
        "agent", "it asked for more tool calls, or repeated more failed ones"
    ),
    "token_limit": Ending("agent", "its conversation grew beyond what it may use"),
    "cost_limit": Ending("agent", "it spent more than it may"),
    "timeout": Ending("agent", "it had its time, and waiting for rate limits was not counted"),
    "refusal": Ending("agent", "the model, which is part of it, declined or was filtered"),
    "server_error": Ending("world", "a tool server died, hung or spoke garbage"),
    "model_error": Ending("world", "the model's API failed, or gave what nobody could read"),
    "cancelled": Ending("world", "somebody stopped it before it could end"),
}
"""One entry for each stop reason of the contract."""

_OUTCOMES: Mapping[Blame, Outcome] = {"nobody": "passed", "agent": "failed", "world": "error"}


def outcome_of(stop_reason: StopReason, *, answered: bool) -> Outcome:
    """Return an episode's outcome by how its run ended, before any of its checks.

    A run that timed out before its model answered even once (`answered`) shows nothing of
    the agent: there the API hung, and that is the world's.
    """
    if stop_reason == "timeout" and not answered:
        return "error"
    return _OUTCOMES[ENDINGS[stop_reason].blame]
