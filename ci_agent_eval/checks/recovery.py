"""The check that an agent recovers from tool errors, or reports them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ci_agent_eval.checks.base import BaseCheck, compute_share
from ci_agent_eval.checks.exchanges import get_turns
from ci_agent_eval.checks.formatting import format_call, format_list, format_value
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import Pattern, Texts
from ci_agent_eval.contract.trajectory import ToolCall, Turn
from ci_agent_eval.contract.wording import pluralize

SAYS_SO = re.compile(
    r"\b(sorry|apologi[sz]e|unfortunately|unable|fail(ed|s|ure)?|errors?|problems?|unavailable"
    r"|can(['\N{RIGHT SINGLE QUOTATION MARK}]t|not)|could(n['\N{RIGHT SINGLE QUOTATION MARK}]t"
    r"| not)|did(n['\N{RIGHT SINGLE QUOTATION MARK}]t| not) work|not (found|possible))\b",
    re.IGNORECASE,
)
"""English phrases by which an agent reports a failure."""


@dataclass(frozen=True, slots=True)
class ErrorRecovery(BaseCheck):
    """After each tool error, the agent calls the tool again with success, or reports the error.

    `says_so` is the pattern of a report. `tools` limits the check to some tools. The score is
    the share of errors that were recovered or reported.
    """

    tools: Texts = ()
    says_so: Pattern = SAYS_SO

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        failed = list(self._find_errors(episode))
        unrecovered = [
            f"{format_call(call)}: {format_value(call.error)}" for call, good in failed if not good
        ]
        reason = "no tool reported an error"
        if failed:
            reason = f"made good: {pluralize(len(failed), 'error')}"
        if unrecovered:
            reason = f"never made good, nor told: {format_list(unrecovered)}"
        score = compute_share(len(failed) - len(unrecovered), len(failed))
        statement = "recovers from errors of tools"
        return (self._build_assertion(statement, not unrecovered, reason, score=score),)

    def _find_errors(self, episode: Episode) -> Iterator[tuple[ToolCall, bool]]:
        """Yield each failed call, and whether it was recovered or reported."""
        turns = get_turns(episode)
        for index, turn in enumerate(turns):
            for number, call in enumerate(turn.tool_calls, 1):
                if call.error is None or (self.tools and call.name not in self.tools):
                    continue
                later = (
                    *turn.tool_calls[number:],
                    *(c for t in turns[index + 1 :] for c in t.tool_calls),
                )
                worked = any(c.name == call.name and not c.has_failed for c in later)
                yield call, worked or self._is_reported(turns[index:])

    def _is_reported(self, since: Sequence[Turn]) -> bool:
        """Return whether the agent reports the failure, from the turn of the error on."""
        assert isinstance(self.says_so, re.Pattern)  # noqa: S101 - its validation compiled it
        return any(t.role == "assistant" and self.says_so.search(t.content) for t in since)
