"""What an agent has to say, and what it must not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from ci_agent_eval.checks.base import (
    BaseCheck,
    Patterns,
    Texts,
    compile_patterns,
    compute_share,
    normalize_texts,
    require_any,
    set_fields,
)
from ci_agent_eval.checks.exchanges import get_agent_texts
from ci_agent_eval.checks.formatting import format_list, truncate_text
from ci_agent_eval.contract.episode import Assertion, Episode

_AROUND = 40
"""Characters of the agent's text that a reason shows on each side of a find."""


@dataclass(frozen=True, slots=True)
class _TextCheck(BaseCheck):
    """Texts and regular expressions that are looked for in all the agent writes.

    Python's `re` has no time limit: a pattern that nests repeats, such as `(a+)+b`, can take
    for ever on a text an agent wrote. Such a pattern is the test author's to avoid.
    """

    texts: Texts = ()
    patterns: Patterns = ()
    ignore_case: bool = False

    def __post_init__(self) -> None:
        owner = type(self).__name__
        set_fields(
            self,
            texts=normalize_texts(owner, "texts", self.texts),
            patterns=compile_patterns(owner, "patterns", self.patterns),
        )
        require_any(owner, self.texts, self.patterns)

    def _searched(self) -> Iterator[tuple[str, re.Pattern[str]]]:
        """Yield what is looked for, as a reader knows it and as an expression."""
        case = re.IGNORECASE if self.ignore_case else re.NOFLAG
        for text in self.texts:
            yield repr(text), re.compile(re.escape(text), case)
        for found in cast("tuple[re.Pattern[str], ...]", self.patterns):
            yield f"/{found.pattern}/", re.compile(found.pattern, found.flags | case)


@dataclass(frozen=True, slots=True)
class RequiredText(_TextCheck):
    """Each of these texts and patterns is somewhere in what the agent wrote.

    The score is the share that is.
    """

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        written = get_agent_texts(episode)
        wanted = list(self._searched())
        missing = [
            label for label, found in wanted if not any(found.search(text) for text in written)
        ]
        score = compute_share(len(wanted) - len(missing), len(wanted))
        reason = f"not found: {format_list(missing)}" if missing else "the agent wrote it"
        if missing and not any(text.strip() for text in written):
            reason = "the agent wrote nothing"
        says = f"says {format_list(label for label, _ in wanted)}"
        return (self._assertion(says, not missing, reason, score=score),)


@dataclass(frozen=True, slots=True)
class ForbiddenText(_TextCheck):
    """None of these texts and patterns is anywhere in what the agent wrote."""

    def assertions(self, episode: Episode) -> tuple[Assertion, ...]:
        """Return one assertion."""
        unwanted = list(self._searched())
        finds = [
            f"turn {number} of the agent has {label}: {_quote_match(found)}"
            for number, text in enumerate(get_agent_texts(episode), 1)
            for label, pattern in unwanted
            if (found := pattern.search(text)) is not None
        ]
        reason = "; ".join(finds[:3]) if finds else "the agent wrote none of it"
        if len(finds) > 3:
            reason += f"; and {len(finds) - 3} more"
        says = f"never says {format_list(label for label, _ in unwanted)}"
        return (self._assertion(says, not finds, reason),)


def _quote_match(found: re.Match[str]) -> str:
    """Return what was found with a little before and after it."""
    start, end = max(found.start() - _AROUND, 0), min(found.end(), found.start() + _AROUND)
    return truncate_text("…" * bool(start) + found.string[start : end + _AROUND])
