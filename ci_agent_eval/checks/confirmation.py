"""Tools that need the user's yes before they are called."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ci_agent_eval.checks.base import Named, Texts, keep, not_empty, pattern, share, texts, whole
from ci_agent_eval.checks.exchanges import Exchange, exchanges
from ci_agent_eval.checks.shown import called, counted, cut, listed
from ci_agent_eval.contract.episode import Assertion, Episode

Says = str | re.Pattern[str] | Callable[[str], object]
"""A regular expression that a text has to match somewhere, or a function of the text."""

YES = re.compile(
    r"\b(yes|yeah|yep|yup|sure|ok|okay|confirm|confirmed|correct|agreed?|approved?"
    r"|go ahead|go for it|please do|do it|do that|proceed|sounds good)\b",
    re.IGNORECASE,
)
NO = re.compile(
    r"\b(no|nope|not|never|don['\N{RIGHT SINGLE QUOTATION MARK}]?t|do not|wait|stop|cancel|hold)\b",
    re.IGNORECASE,
)


def confirms(text: str) -> bool:
    """Say whether a user's message is a yes with no "no" in it; English."""
    return YES.search(text) is not None and NO.search(text) is None


def asks(text: str) -> bool:
    """Say whether an agent's message asks something."""
    return "?" in text


@dataclass(frozen=True, slots=True)
class ConfirmedTools(Named):
    """Each call of these tools comes after the agent asked and the user said yes.

    The user's last message before the call has to confirm (`said`), and what the agent
    wrote right before that message has to ask (`asked`). `within` lets the yes be one of
    the user's last so many messages. The score is the share of calls that were confirmed.
    """

    tools: Texts
    said: Says = confirms
    asked: Says = asks
    within: int = 1

    def __post_init__(self) -> None:
        owner = "ConfirmedTools"
        keep(self, tools=texts(owner, "tools", self.tools))
        not_empty(owner, self.tools)
        whole(owner, "within", self.within, least=1)
        for name in ("said", "asked"):
            value: Any = getattr(self, name)
            if not callable(value):
                keep(self, **{name: pattern(owner, name, value)})

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        every = exchanges(episode)
        made = [
            (call, self._confirmed(every[: at + 1]), exchange.said)
            for at, exchange in enumerate(every)
            for call in exchange.calls
            if call.name in self.tools
        ]
        wrong = [
            f"{called(call)} after the user said {cut(' '.join(said), 60)!r}"
            for call, confirmed, said in made
            if not confirmed
        ]
        reason = f"{counted(len(made), 'call')}, each confirmed" if made else "never called"
        if wrong:
            reason = f"not confirmed: {listed(wrong)}"
        says = f"asks before it calls {listed(self.tools)}"
        score = share(len(made) - len(wrong), len(made))
        return (self._assertion(says, not wrong, reason, score=score),)

    def _confirmed(self, until: Sequence[Exchange]) -> bool:
        """Say whether one of the user's last messages is a yes to what the agent asked."""
        pairs = itertools.pairwise(until)
        return any(
            _matches(self.asked, before.reply) and _matches(self.said, "\n".join(after.said))
            for before, after in list(pairs)[-self.within :]
        )


def _matches(says: Says, text: str) -> bool:
    if isinstance(says, re.Pattern):
        return says.search(text) is not None
    assert callable(says)  # noqa: S101 - `__post_init__` compiled what is no function
    return bool(says(text))
