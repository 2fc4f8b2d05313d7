"""Usage and delays of an episode beside its turns: judges, simulated users, rate limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ci_agent_eval.contract.episode import Episode, SideUsage
from ci_agent_eval.contract.trajectory import Turn


@dataclass
class EpisodeUsage:
    """The fields of an episode that count its usage and delays beside the turns."""

    judge: SideUsage | None = None
    simulated_user: SideUsage | None = None
    rate_limited: int = 0
    cassette_misses: int = 0

    def merge(self, episode: Episode) -> None:
        """Merge the usage of a finished episode; a value that it got from here counts once."""
        self.rate_limited = max(self.rate_limited, episode.rate_limited)
        self.cassette_misses = max(self.cassette_misses, episode.cassette_misses)
        if episode.judge is not None and episode.judge is not self.judge:
            self.judge = episode.judge + self.judge
        user = episode.simulated_user
        if user is not None and user is not self.simulated_user:
            self.simulated_user = user + self.simulated_user


def lack_measurement(turns: Iterable[Turn]) -> bool:
    """Return whether a model answered, as far as is known, and no answer has tokens or cost."""
    answers = [turn for turn in turns if turn.role == "assistant"]
    return bool(answers) and all(
        turn.tokens is None and turn.cost_usd is None and turn.source in {None, "live"}
        for turn in answers
    )
