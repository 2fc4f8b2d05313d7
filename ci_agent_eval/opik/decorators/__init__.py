"""Migration from Opik's `@llm_unit`: the decorators and the names of Opik's episode contract.

The decorators import nothing else; the names of the contract import it on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ci_agent_eval.errors import create_lazy_getattr
from ci_agent_eval.opik.decorators.decorators import llm_episode, llm_unit

if TYPE_CHECKING:
    from ci_agent_eval.opik.decorators.returned_episode import (
        EpisodeAssertion,
        EpisodeBudgetMetric,
        EpisodeBudgets,
        EpisodeResult,
        EpisodeScore,
        build_trajectory_summary,
        make_max_turns_assertion,
        make_tool_call_budget,
    )

__all__ = [
    "EpisodeAssertion",
    "EpisodeBudgetMetric",
    "EpisodeBudgets",
    "EpisodeResult",
    "EpisodeScore",
    "build_trajectory_summary",
    "llm_episode",
    "llm_unit",
    "make_max_turns_assertion",
    "make_tool_call_budget",
]

__getattr__ = create_lazy_getattr(
    __name__, dict.fromkeys(__all__, "opik.decorators.returned_episode")
)
