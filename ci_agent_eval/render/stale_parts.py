"""Words about stale parts: what scenarios no longer reach, and what none reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.stale_parts import StaleParts, StaleScenario
from ci_agent_eval.render.numbers import count_noun


@dataclass(frozen=True, slots=True)
class StaleRow:
    """Foreign text: parts that a scenario lost, or a part that no scenario reaches."""

    parts: Sequence[str]
    scenario_id: str = ""
    """Empty: it is about no scenario."""


@dataclass(frozen=True, slots=True)
class StaleGroup:
    """A list of stale parts of one kind."""

    title: str
    rows: Sequence[StaleRow]


@dataclass(frozen=True, slots=True)
class StaleView:
    """The stale parts, ready to be rendered."""

    title: str
    groups: Sequence[StaleGroup]


def build_stale_view(found: StaleParts) -> StaleView | None:
    """Return the view; None: no part is stale."""
    lists = (
        (
            "Passing scenarios that no longer reach code or files",
            [row for one in found.scenarios if (row := _build_lost_row(one)) is not None],
        ),
        (
            "Patterns of depends_on that match no file",
            [StaleRow(one.patterns, one.scenario_id) for one in found.scenarios if one.patterns],
        ),
        ("Prompt files that no scenario reads", _build_rows(found.prompts)),
        ("Skills that no scenario reads", _build_rows(found.skills)),
        ("Tools that are offered and that no scenario calls", _build_rows(found.tools)),
    )
    groups = tuple(StaleGroup(title, tuple(listed)) for title, listed in lists if listed)
    counts = (
        (len(found.scenarios), "scenario"),
        (len(found.prompts), "prompt file"),
        (len(found.skills), "skill"),
        (len(found.tools), "tool"),
    )
    title = (
        f"Stale parts: {', '.join(count_noun(number, noun) for number, noun in counts if number)}"
    )
    return StaleView(title, groups) if groups else None


def _build_rows(parts: Sequence[str]) -> list[StaleRow]:
    return [StaleRow((part,)) for part in parts]


def _build_lost_row(one: StaleScenario) -> StaleRow | None:
    lost = (*(f"{name} in {path}" for path, name in one.functions), *one.files)
    return StaleRow(lost, one.scenario_id) if lost else None
