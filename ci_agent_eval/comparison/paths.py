"""The trajectory diff: where the tool calls of a scenario leave those of the baseline."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from ci_agent_eval.comparison.model import Divergence
from ci_agent_eval.facts import EpisodeFacts, Step


def representative(episodes: Iterable[EpisodeFacts], *, failing: bool) -> tuple[Step, ...] | None:
    """Return the most frequent sequence of tool calls, of the failing episodes or of the passing.

    Of equally frequent ones the smallest, so that no order of episodes matters. Where no episode
    ended so, all count; None where there is none.
    """
    judged = [facts for facts in episodes if facts.outcome in ("passed", "failed")]
    wanted = "failed" if failing else "passed"
    pool = [facts for facts in judged if facts.outcome == wanted] or judged
    counts = Counter(facts.steps for facts in pool)
    return min(counts, key=lambda steps: (-counts[steps], steps)) if counts else None


def divergence(before: tuple[Step, ...], after: tuple[Step, ...]) -> Divergence | None:
    """Return the first place where two sequences of tool calls part; None: they are the same."""
    for number, (old, new) in enumerate(zip(before, after, strict=False), start=1):
        if old.tool != new.tool:
            return _at(new.turn, number, None, before, after)
        if old.arguments != new.arguments:
            argument = _first_difference(old.arguments, new.arguments)
            return _at(new.turn, number, argument, before, after)
    if len(before) == len(after):
        return None
    longer = before if len(before) > len(after) else after
    at = min(len(before), len(after))
    return _at(longer[at].turn, at + 1, None, before, after)


def _at(
    turn: int,
    call: int,
    argument: str | None,
    before: tuple[Step, ...],
    after: tuple[Step, ...],
) -> Divergence:
    names = (tuple(step.tool for step in before), tuple(step.tool for step in after))
    return Divergence(turn, call, argument, *names)


def _first_difference(before: str, after: str) -> str:
    """Return the name of the first argument that differs, by name; `arguments` where none has."""
    try:
        old, new = json.loads(before), json.loads(after)
    except ValueError:  # it was cut
        return "arguments"
    if not isinstance(old, dict) or not isinstance(new, dict):
        return "arguments"
    missing = object()
    names = sorted({*old, *new})
    return next((n for n in names if old.get(n, missing) != new.get(n, missing)), "arguments")
