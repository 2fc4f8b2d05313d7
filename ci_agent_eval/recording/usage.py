"""Usage and delays of an episode beside its turns: judges, simulated users, rate limits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ci_agent_eval.contract.episode import Episode, SideUsage
from ci_agent_eval.contract.trajectory import TokenUsage, sum_tokens
from ci_agent_eval.recording.validation import build_value


@dataclass
class EpisodeUsage:
    """The fields of an episode that count its usage and delays beside the turns."""

    judge: SideUsage | None = None
    simulated_user: SideUsage | None = None
    rate_limited: int = 0
    cassette_misses: int = 0

    def add_judge_call(self, tokens: TokenUsage, cost_usd: float | None) -> None:
        """Add a call of a judge. Raises InputError for an invalid value."""
        values = {"calls": 1, "tokens": tokens, "cost_usd": cost_usd}
        self.judge = add_usage(self.judge, build_value("judge's call", SideUsage, **values))

    def add_user_calls(self, calls: int, tokens: TokenUsage | None, cost_usd: float | None) -> None:
        """Add calls of a simulated user's model. Raises InputError for an invalid value."""
        values = {"calls": calls, "tokens": tokens, "cost_usd": cost_usd}
        used = build_value("simulated user's calls", SideUsage, **values)
        self.simulated_user = add_usage(self.simulated_user, used)

    def merge(self, episode: Episode) -> None:
        """Merge the usage of a finished episode; a value that it got from here counts once."""
        self.rate_limited = max(self.rate_limited, episode.rate_limited)
        self.cassette_misses = max(self.cassette_misses, episode.cassette_misses)
        if episode.judge is not self.judge:
            self.judge = add_usage(self.judge, episode.judge)
        if episode.simulated_user is not self.simulated_user:
            self.simulated_user = add_usage(self.simulated_user, episode.simulated_user)


def add_usage(own: SideUsage | None, other: SideUsage | None) -> SideUsage | None:
    """Add two usages; the cost is unknown if one of them has no price."""
    if own is None or other is None:
        return own or other
    costs = (own.cost_usd, other.cost_usd)
    return SideUsage(
        calls=own.calls + other.calls,
        tokens=_add_tokens(own.tokens, other.tokens),
        cost_usd=None if None in costs else math.fsum(cost for cost in costs if cost is not None),
    )


def _add_tokens(own: TokenUsage | None, other: TokenUsage | None) -> TokenUsage | None:
    if own is None or other is None:
        return None
    return sum_tokens((own, other))
