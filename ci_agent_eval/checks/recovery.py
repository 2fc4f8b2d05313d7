"""What an agent makes of a tool's error."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.checks.base import (
    BaseCheck,
    Texts,
    compile_pattern,
    compute_share,
    normalize_texts,
    set_fields,
)
from ci_agent_eval.checks.exchanges import get_turns
from ci_agent_eval.checks.formatting import format_call, format_list, format_value
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.trajectory import ToolCall, Turn
from ci_agent_eval.contract.wording import pluralize

SAYS_SO = re.compile(
    r"\b(sorry|apologi[sz]e|unfortunately|unable|fail(ed|s|ure)?|errors?|problems?|unavailable"
    r"|can(['\N{RIGHT SINGLE QUOTATION MARK}]t|not)|could(n['\N{RIGHT SINGLE QUOTATION MARK}]t"
    r"| not)|did(n['\N{RIGHT SINGLE QUOTATION MARK}]t| not) work|not (found|possible))\b",
    re.IGNORECASE,
)
"""How an agent says, in English, that something did not work."""


@dataclass(frozen=True, slots=True)
class ErrorRecovery(BaseCheck):
    """After each error of a tool, that tool is called again and works, or the reply says so.

    `says_so` is what such a reply has to match. `tools` narrows it to some. The score is
    the share of errors that were made good.
    """

    tools: Texts = ()
    says_so: str | re.Pattern[str] = SAYS_SO

    def __post_init__(self) -> None:
        set_fields(
            self,
            tools=normalize_texts("ErrorRecovery", "tools", self.tools),
            says_so=compile_pattern("ErrorRecovery", "says_so", self.says_so),
        )

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        failed = list(self._errors(episode))
        left = [
            f"{format_call(call)}: {format_value(call.error)}" for call, good in failed if not good
        ]
        reason = (
            f"made good: {pluralize(len(failed), 'error')}"
            if failed
            else "no tool reported an error"
        )
        if left:
            reason = f"never made good, nor told: {format_list(left)}"
        score = compute_share(len(failed) - len(left), len(failed))
        return (self._assertion("recovers from errors of tools", not left, reason, score=score),)

    def _errors(self, episode: Episode) -> Iterator[tuple[ToolCall, bool]]:
        """Yield each call that failed, and whether that was made good."""
        every = get_turns(episode)
        for at, turn in enumerate(every):
            for number, call in enumerate(turn.tool_calls, 1):
                if call.error is None or (self.tools and call.name not in self.tools):
                    continue
                later = (
                    *turn.tool_calls[number:],
                    *(c for t in every[at + 1 :] for c in t.tool_calls),
                )
                worked = any(c.name == call.name and not c.has_failed for c in later)
                yield call, worked or self._told(every[at:])

    def _told(self, since: Sequence[Turn]) -> bool:
        """Say whether the agent, from the turn of the error on, says that it did not work."""
        assert isinstance(self.says_so, re.Pattern)  # noqa: S101 - `__post_init__` compiled it
        return any(t.role == "assistant" and self.says_so.search(t.content) for t in since)
