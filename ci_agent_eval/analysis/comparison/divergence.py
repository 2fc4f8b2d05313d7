"""Find the first divergence of a scenario's tool calls from the baseline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from ci_agent_eval.analysis.comparison.model import Divergence, ScenarioComparison
from ci_agent_eval.analysis.comparison.pool import PoolPair, ToolSequence, list_tools
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, TrajectoryStep

MAX_VALUE = 80
"""Maximum number of characters kept of an argument that differs."""
LEADING_CONTEXT = 20
"""Number of these before the first character that differs."""

Steps = tuple[TrajectoryStep, ...]
Renames = Mapping[str, str]
"""New names of tools to their names in the base."""


def find_typical(counts: Mapping[ToolSequence, int], tool: str | None = None) -> ToolSequence:
    """Return the most frequent sequence, among equally frequent ones the smallest.

    With a tool: of those that call it.
    """
    wanted = [sequence for sequence in counts if tool is None or tool in sequence]
    return min(wanted, key=lambda sequence: (-counts[sequence], sequence))


def find_divergence(
    scenario: ScenarioComparison, pools: PoolPair, names: Renames
) -> Divergence | None:
    """Return where the failing episodes leave the base, or where a changed scenario does.

    None: the calls are the same, or differ no more than those of unchanged runs do.
    """
    before, after = (list(pool.judged) for pool in pools)
    if scenario.change == "newly_failing" or scenario.call in {"regression", "undecided"}:
        passing = [record for record in before if record.outcome == "passed"]
        failing = [record for record in after if record.outcome == "failed"]
        if found := _compare_typical(passing, failing, names, arguments=True):
            return replace(found, episodes="failing")
    if over := set(scenario.newly_over):
        within = [record for record in before if not _is_over(record, over)]
        beyond = [record for record in after if _is_over(record, over)]
        if found := _compare_typical(within, beyond, names, arguments=False):
            return replace(found, episodes="over_budget")
    if scenario.behaviour is None or not scenario.behaviour.changed:
        return None
    before, after = ([record for record in side if record.is_rated] for side in (before, after))
    found = _compare_typical(before, after, names, arguments=False)
    return found or _compare_risen(before, after, names)


def _is_over(record: EpisodeRecord, budgets: set[str]) -> bool:
    return any(violation.budget in budgets for violation in record.violations)


def _compare_typical(
    before: Sequence[EpisodeRecord],
    after: Sequence[EpisodeRecord],
    names: Renames,
    *,
    arguments: bool,
) -> Divergence | None:
    """Compare the most frequent sequences; None: they are equal, or there is no episode."""
    if not before or not after:
        return None
    typical = (find_typical(Counter(map(_get_tools, side))) for side in (before, after))
    return _compare_sequences((before, after), tuple(typical), names, arguments=arguments)


def _compare_risen(
    before: Sequence[EpisodeRecord], after: Sequence[EpisodeRecord], names: Renames
) -> Divergence | None:
    """Compare the base's typical tool sequence with the one that gained most episodes."""
    old, new = Counter(map(_get_tools, before)), Counter(map(_get_tools, after))
    known = {_rename(sequence, names): count for sequence, count in new.items()}
    rises = {
        s: known[_rename(s, names)] / len(after) - old[_rename(s, names)] / len(before) for s in new
    }
    usual = find_typical(old)
    risen = [s for s in rises if rises[s] > 0 and _rename(s, names) != usual]
    if not risen:
        return None
    most = min(risen, key=lambda sequence: (-rises[sequence], sequence))
    return _compare_sequences((before, after), (usual, most), names, arguments=False)


def _get_tools(record: EpisodeRecord) -> ToolSequence:
    return list_tools(record.steps)


def _rename(sequence: ToolSequence, names: Renames) -> ToolSequence:
    return tuple(names.get(tool, tool) for tool in sequence)


def _compare_sequences(
    sides: tuple[Sequence[EpisodeRecord], ...],
    sequences: tuple[ToolSequence, ...],
    names: Renames,
    *,
    arguments: bool,
) -> Divergence | None:
    """Compare two sequences, each by the most frequent steps of the episodes that make it."""
    counts = [
        Counter(record.steps for record in side if _get_tools(record) == sequence)
        for side, sequence in zip(sides, sequences, strict=True)
    ]
    before, after = (min(c, key=lambda steps: (-c[steps], steps)) for c in counts)
    found = _find_other_tool(before, after, names)
    if found is None and arguments:
        found = _find_other_argument(before, after)
    if found is None:
        return None
    shares = [(c.total(), len(side)) for c, side in zip(counts, sides, strict=True)]
    return replace(found, share_before=shares[0], share_after=shares[1])


def _find_other_tool(before: Steps, after: Steps, names: Renames) -> Divergence | None:
    for at, (old, new) in enumerate(zip_longest(before, after)):
        if old is None or new is None or old.tool != names.get(new.tool, new.tool):
            return _build_divergence(at, after if new else before, before, after)
    return None


def _find_other_argument(before: Steps, after: Steps) -> Divergence | None:
    """Return the first argument that differs, of sequences of the same tools."""
    for at, (old, new) in enumerate(zip(before, after, strict=True)):
        if old.arguments != new.arguments:
            name, old_text, new_text = _find_first_difference(old.arguments, new.arguments)
            found = _build_divergence(at, after, before, after)
            return replace(found, argument=name, argument_before=old_text, argument_after=new_text)
    return None


def _build_divergence(at: int, steps: Steps, before: Steps, after: Steps) -> Divergence:
    """Build the divergence at a step; `steps` are of the side that the turn number refers to."""
    turn = steps[at].turn
    return Divergence(
        turn=turn,
        call=at + 1,
        argument=None,
        before=list_tools(before),
        after=list_tools(after),
        call_of_turn=sum(1 for step in steps[: at + 1] if step.turn == turn),
    )


def _find_first_difference(before: str, after: str) -> tuple[str, str | None, str | None]:
    """Return the name of the first argument that differs, and its value on both sides.

    The name is `arguments` (all of them) for a cut call and for one without argument names.
    """
    try:
        old, new = json.loads(before), json.loads(after)
    except ValueError:  # It was cut, perhaps in a secret that can no longer be recognized.
        return "arguments", None, None
    all_arguments = ("arguments", *cut_around_difference(before, after))
    if not isinstance(old, dict) or not isinstance(new, dict):
        return all_arguments
    for name in sorted({*old, *new}):
        old_text, new_text = (_format_argument(side, name) for side in (old, new))
        if old_text != new_text:
            return (name, *cut_around_difference(old_text, new_text))
    return all_arguments


def _format_argument(arguments: dict[str, Any], name: str) -> str | None:
    if name not in arguments:
        return None
    return json.dumps(arguments[name], sort_keys=True, ensure_ascii=False)


def cut_around_difference(before: str | None, after: str | None) -> tuple[str | None, str | None]:
    """Cut two long texts to where they begin to differ, at most `MAX_VALUE` characters each."""
    if before is None or after is None:
        return before and _cut_text(before, 0), after and _cut_text(after, 0)
    pairs = enumerate(zip(before, after, strict=False))
    same = next((at for at, (old, new) in pairs if old != new), min(len(before), len(after)))
    start = max(0, same - LEADING_CONTEXT) if max(len(before), len(after)) > MAX_VALUE else 0
    return _cut_text(before, start), _cut_text(after, start)


def _cut_text(text: str, start: int) -> str:
    part = text[start : start + MAX_VALUE]
    return f"{'…' if start else ''}{part}{'…' if start + MAX_VALUE < len(text) else ''}"
