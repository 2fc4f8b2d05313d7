"""Imports that recorded model calls and runs of agents need, made before the first episode."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

_FOR_TRAFFIC = (
    "ci_agent_eval.engine.traffic",
    "genai_prices",
    "genai_prices.data_snapshot",
)
_FOR_RUNS = (
    "ci_agent_eval.engine",
    "ci_agent_eval.engine.adapters.loop",  # brings PydanticAI
    "ci_agent_eval.engine.adapters.declared",
    "ci_agent_eval.engine.run",
    "ci_agent_eval.engine.adapters.run",
    "ci_agent_eval.engine.adapters.function",
    "ci_agent_eval.engine.adapters.http",
)


def import_before_episodes(*, has_runs: bool) -> None:
    """Import what model calls need and, with `has_runs`, the engine; extras only if installed.

    Within an episode, an import would count as its latency, meet a library that another episode is
    importing, or see a frozen date.
    """
    for name in (*_FOR_TRAFFIC, *(_FOR_RUNS if has_runs else ())):
        with suppress(ImportError):
            import_module(name)
