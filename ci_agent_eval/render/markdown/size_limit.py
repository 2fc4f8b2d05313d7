"""Fit a report into a byte limit: sections are shortened, then dropped, in one order.

The least important section is first; verdict and evidence line always stay. The steps are
applied in order until the text fits, and the text counts the omitted lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ci_agent_eval.render.markdown.section import NAMES, NOUNS, Section
from ci_agent_eval.render.numbers import format_count

NO_LINES: Final = 0
FEW_LINES: Final = 3
SOME_LINES: Final = 10

STEPS: tuple[tuple[str, int], ...] = (
    ("sources", NO_LINES),
    ("iterations", NO_LINES),
    ("trend", NO_LINES),
    ("passing", NO_LINES),
    ("diverging", FEW_LINES),
    ("outputs", FEW_LINES),
    ("changes", SOME_LINES),
    ("changed_diffs", FEW_LINES),
    ("measured", SOME_LINES),
    ("evaluations", SOME_LINES),
    ("assertions", SOME_LINES),
    ("diverging", NO_LINES),
    ("outputs", NO_LINES),
    ("flaky", NO_LINES),
    ("warnings", NO_LINES),
    ("acknowledged", SOME_LINES),
    ("quarantined", SOME_LINES),
    ("advisory", NO_LINES),
    ("acknowledged", NO_LINES),
    ("quarantined", NO_LINES),
    ("changes", NO_LINES),
    ("measured", NO_LINES),
    ("changed_diffs", NO_LINES),
    ("assertions", NO_LINES),
    ("skipped", SOME_LINES),
    ("manifest", SOME_LINES),
    ("overruns", SOME_LINES),
    ("errors", SOME_LINES),
    ("tests", SOME_LINES),
    ("findings", SOME_LINES),
    ("baseline", SOME_LINES),
    ("failing", SOME_LINES),
    ("skipped", NO_LINES),
    ("evaluations", FEW_LINES),
    ("figures", NO_LINES),
    ("overruns", FEW_LINES),
    ("errors", FEW_LINES),
    ("tests", FEW_LINES),
    ("manifest", FEW_LINES),
    ("findings", FEW_LINES),
    ("baseline", FEW_LINES),
    ("failing", FEW_LINES),
    ("evaluations", NO_LINES),
    ("overruns", NO_LINES),
    ("errors", NO_LINES),
    ("tests", NO_LINES),
    ("manifest", NO_LINES),
    ("findings", NO_LINES),
    ("baseline", NO_LINES),
    ("failing", NO_LINES),
)
"""Section and its number of lines, in the order of the cuts."""

Lines = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SectionCut:
    """How much of one section was left out."""

    section: Section
    left_out: int

    def __str__(self) -> str:
        one, many = NOUNS[self.section.name]
        total = self.section.total
        return (
            f"{format_count(self.left_out)} of {format_count(total)} {one if total == 1 else many}"
        )


def list_line_limits(most: int) -> Iterator[Lines]:
    """Yield the line limits of the sections: first `most` of each, then ever fewer."""
    lines = dict.fromkeys(NAMES, most)
    yield dict(lines)
    for name, fewer in STEPS:
        lines[name] = min(lines[name], fewer)
        yield dict(lines)


def find_cuts(sections: tuple[Section, ...], lines: Lines, most: int) -> tuple[SectionCut, ...]:
    """Return the cuts by these limits beyond `most` lines of each section."""
    found = (
        SectionCut(section, section.total - lines[section.name])
        for section in sections
        if lines[section.name] < min(section.total, most)
    )
    return tuple(found)


def fit_to_limit(compose: Callable[[Lines], str], most: int, limit: int) -> str | None:
    """Return the first composition of at most `limit` UTF-8 bytes, or None if none is."""
    for lines in list_line_limits(most):
        text = compose(lines)
        if count_bytes(text) <= limit:
            return text
    return None


def count_bytes(text: str) -> int:
    """Return the text's length in UTF-8 bytes."""
    return len(text.encode("utf-8"))
