"""Find the first divergence of a scenario's tool calls from the baseline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ci_agent_eval.analysis.comparison.model import Divergence
from ci_agent_eval.analysis.loaded_results import EpisodeRecord, TrajectoryStep

MAX_VALUE = 80
"""Maximum number of characters kept of an argument that differs."""
LEADING_CONTEXT = 20
"""Number of these before the first character that differs."""


def find_typical_steps(
    episodes: Iterable[EpisodeRecord], *, failing: bool
) -> tuple[TrajectoryStep, ...] | None:
    """Return the most frequent sequence of tool calls of the failing or of the passing episodes.

    Among equally frequent ones the smallest, so that the order of episodes does not matter. If no
    episode has that outcome, all judged ones count. None: no episode was judged.
    """
    judged = [record for record in episodes if record.outcome in ("passed", "failed")]
    wanted = "failed" if failing else "passed"
    pool = [record for record in judged if record.outcome == wanted] or judged
    counts = Counter(record.steps for record in pool)
    return min(counts, key=lambda steps: (-counts[steps], steps)) if counts else None


def find_divergence(
    before: tuple[TrajectoryStep, ...], after: tuple[TrajectoryStep, ...]
) -> Divergence | None:
    """Return the first difference of two sequences of tool calls; None: they are equal."""
    for at, (old, new) in enumerate(zip(before, after, strict=False)):
        if old.tool != new.tool:
            return _build_divergence(at, after, before, after)
        if old.arguments != new.arguments:
            name, old_text, new_text = _find_first_difference(old.arguments, new.arguments)
            found = _build_divergence(at, after, before, after)
            return replace(found, argument=name, argument_before=old_text, argument_after=new_text)
    if len(before) == len(after):
        return None
    longer = before if len(before) > len(after) else after
    return _build_divergence(min(len(before), len(after)), longer, before, after)


def _build_divergence(
    at: int,
    steps: tuple[TrajectoryStep, ...],
    before: tuple[TrajectoryStep, ...],
    after: tuple[TrajectoryStep, ...],
) -> Divergence:
    """Build the divergence at a step; `steps` are of the side that the turn number refers to."""
    turn = steps[at].turn
    return Divergence(
        turn=turn,
        call=at + 1,
        argument=None,
        before=tuple(step.tool for step in before),
        after=tuple(step.tool for step in after),
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
