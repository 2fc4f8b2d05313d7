"""Checks for required and forbidden text in the agent's messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from ci_agent_eval.checks.base import (
    BaseCheck,
    compute_share,
    format_list,
    format_text,
    require_any,
)
from ci_agent_eval.checks.exchanges import get_agent_texts
from ci_agent_eval.contract.episode import Assertion, Episode
from ci_agent_eval.contract.fields import Patterns, Texts, validate_fields

_CONTEXT_LENGTH = 40
"""Characters of the agent's text that a reason quotes on each side of a match."""


@dataclass(frozen=True, slots=True)
class _TextCheck(BaseCheck):
    """Base class of checks that search the agent's messages for texts and regular expressions.

    Python's `re` has no time limit: a pattern with nested repeats, such as `(a+)+b`, can run
    forever on an agent's text. Test authors have to avoid such patterns.
    """

    texts: Texts = ()
    patterns: Patterns = ()
    ignore_case: bool = False

    def __post_init__(self) -> None:
        validate_fields(self)
        require_any(type(self).__name__, self.texts, self.patterns)

    def _compile_patterns(self) -> Iterator[tuple[str, re.Pattern[str]]]:
        """Yield the label and the compiled expression of each text and pattern."""
        case = re.IGNORECASE if self.ignore_case else re.NOFLAG
        for text in self.texts:
            yield repr(text), re.compile(re.escape(text), case)
        for found in cast("tuple[re.Pattern[str], ...]", self.patterns):
            yield f"/{found.pattern}/", re.compile(found.pattern, found.flags | case)


@dataclass(frozen=True, slots=True)
class RequiredText(_TextCheck):
    """The agent's messages contain each of these texts and patterns.

    The score is the share that was found.
    """

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        written = get_agent_texts(episode)
        wanted = list(self._compile_patterns())
        missing = [
            label for label, found in wanted if not any(found.search(text) for text in written)
        ]
        score = compute_share(len(wanted) - len(missing), len(wanted))
        reason = f"not found: {format_list(missing)}" if missing else "the agent wrote it"
        if missing and not any(text.strip() for text in written):
            reason = "the agent wrote nothing"
        statement = f"says {format_list(label for label, _ in wanted)}"
        return (self._build_assertion(statement, not missing, reason, score=score),)


@dataclass(frozen=True, slots=True)
class ForbiddenText(_TextCheck):
    """The agent's messages contain none of these texts and patterns."""

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        unwanted = list(self._compile_patterns())
        matches = [
            f"turn {number} of the agent has {label}: {_quote_match(found)}"
            for number, text in enumerate(get_agent_texts(episode), 1)
            for label, pattern in unwanted
            if (found := pattern.search(text)) is not None
        ]
        reason = "; ".join(matches[:3]) if matches else "the agent wrote none of it"
        if len(matches) > 3:
            reason += f"; and {len(matches) - 3} more"
        statement = f"never says {format_list(label for label, _ in unwanted)}"
        return (self._build_assertion(statement, not matches, reason),)


def _quote_match(found: re.Match[str]) -> str:
    """Return a match with some text before and after it."""
    start = max(found.start() - _CONTEXT_LENGTH, 0)
    end = min(found.end(), found.start() + _CONTEXT_LENGTH)
    return format_text("…" * bool(start) + found.string[start : end + _CONTEXT_LENGTH])
