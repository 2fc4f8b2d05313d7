"""Changes of the instructions of agents and of the descriptions of tools. Pure.

They are found in the baseline or, in replay, in the recordings that no longer fit.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from ci_agent_eval.analysis.loaded_results import EpisodeRecord, assign_agents
from ci_agent_eval.contract.episode import Instructions

MAX_LINES = 60
"""Changed lines kept of a text."""
MAX_LINE = 500
"""Characters kept of a line."""

ScenarioKey = tuple[str, str | None]
"""Scenario id and agent."""

_Part = tuple[Literal["agent", "tool"], str | None]
_Texts = Mapping[_Part, Sequence[str]]
"""The distinct texts of each agent and tool."""


class InstructionsChange(NamedTuple):
    """A changed text and the scenarios whose models get it; name and lines are foreign text."""

    kind: Literal["agent", "tool"]
    name: str | None
    """None: an agent without a known name."""
    lines: tuple[str, ...]
    """The changed lines, with the prefixes `- ` and `+ `."""
    scenarios: tuple[ScenarioKey, ...]
    missed: tuple[ScenarioKey, ...] = ()
    """Those whose errors are all requests without a recording."""


def find_instruction_changes(
    head: Iterable[EpisodeRecord], base: Iterable[EpisodeRecord]
) -> tuple[InstructionsChange, ...]:
    """Return the changes since a baseline run, sorted by their number of scenarios."""
    before, scenarios = _group_episodes(base), _group_episodes(head)
    found: dict[tuple[_Part, tuple[str, ...]], list[ScenarioKey]] = defaultdict(list)
    missed: set[ScenarioKey] = set()
    for key, episodes in scenarios.items():
        errors = [one for one in episodes if one.outcome == "error"]
        if errors and all(one.calls.misses for one in errors):
            missed.add(key)
        for change in dict.fromkeys(_compare_texts(before.get(key, ()), episodes)):
            found[change].append(key)
    changes = (
        InstructionsChange(kind, name, lines, tuple(keys), tuple(k for k in keys if k in missed))
        for ((kind, name), lines), keys in found.items()
    )
    return tuple(sorted(changes, key=lambda one: (-len(one.scenarios), one.kind, one.name or "")))


def _group_episodes(records: Iterable[EpisodeRecord]) -> dict[ScenarioKey, list[EpisodeRecord]]:
    groups: dict[ScenarioKey, list[EpisodeRecord]] = defaultdict(list)
    for record in sorted(assign_agents(records), key=lambda one: (one.key, one.agent or "")):
        groups[record.scenario_id, record.agent].append(record)
    return groups


def _compare_texts(
    base: Iterable[EpisodeRecord], head: Sequence[EpisodeRecord]
) -> Iterator[tuple[_Part, tuple[str, ...]]]:
    """Yield the agents and tools of a scenario whose texts changed, with the changed lines."""
    before = _collect_texts(base)
    misses = {part: one for part, one in _iterate_instructions(head) if one.recorded is not None}
    for part, texts in _collect_texts(head).items():
        if part in misses:
            lines = diff_lines(misses[part].recorded or "", misses[part].text)
        elif part in before and not _is_part(texts, before[part]):
            lines = diff_lines(_find_stable_text(before[part]), _find_stable_text(texts))
        else:
            continue
        if lines:
            yield part, lines


def _iterate_instructions(records: Iterable[EpisodeRecord]) -> Iterator[tuple[_Part, Instructions]]:
    for record in records:
        for one in record.conditions.instructions:
            yield (one.kind, one.name or (record.agent if one.kind == "agent" else None)), one


def _collect_texts(records: Iterable[EpisodeRecord]) -> _Texts:
    texts: dict[_Part, dict[str, None]] = defaultdict(dict)
    for part, one in _iterate_instructions(records):
        texts[part][one.text] = None
    return {part: tuple(found) for part, found in texts.items()}


def _is_part(texts: Sequence[str], others: Sequence[str]) -> bool:
    """Say whether one side has no other text than the other, such as one for each state."""
    return set(texts) <= set(others) or set(others) <= set(texts)


def _find_stable_text(texts: Sequence[str]) -> str:
    """Return the lines that are in all texts: others vary from episode to episode."""
    first, *others = texts
    if not others:
        return first
    known = [set(map(_mask, _split_lines(text))) for text in others]
    lines = (line for line in _split_lines(first) if all(_mask(line) in one for one in known))
    return "\n".join(lines)


@lru_cache(1024)
def diff_lines(before: str, after: str) -> tuple[str, ...]:
    """Return the changed lines of a text; a line with several sentences is split into them.

    Dates, times and ids usually differ from run to run and are ignored.
    """
    from difflib import SequenceMatcher  # noqa: PLC0415 - few reports have changed instructions

    old, new = _split_lines(before), _split_lines(after)
    matcher = SequenceMatcher(None, [*map(_mask, old)], [*map(_mask, new)], autojunk=False)
    lines: list[str] = []
    for kind, first_old, end_old, first_new, end_new in matcher.get_opcodes():
        if kind != "equal":
            lines += [f"- {line[:MAX_LINE]}" for line in old[first_old:end_old]]
            lines += [f"+ {line[:MAX_LINE]}" for line in new[first_new:end_new]]
    return tuple(lines[:MAX_LINES])


_SENTENCE_END = re.compile(r"(?<=[.!?:;]) +(?=\S)")
_VARYING = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"|\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?:January|February|March|April|May|June|July|August|September|October|November|December)"
    r" \d{1,2},? \d{4}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|\b[0-9a-f]{16,}\b",
    re.ASCII,
)


@lru_cache(4096)
def _mask(line: str) -> str:
    return _VARYING.sub("#", line)


def _split_lines(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return [part for line in lines if line for part in _SENTENCE_END.split(line)]
