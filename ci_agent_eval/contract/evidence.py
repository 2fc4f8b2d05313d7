"""Whether an episode holds what its verdict needs: something that the agent did, and an assertion.

An episode of our recorder says that it needs both (`evidence: required`). One that says nothing,
written by hand or by another tool, is judged by what it contains: any one of them will do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ci_agent_eval.contract.episode import Episode

Evidence = Literal["required", "none"]
"""`required`: a completed turn or tool call, and an assertion. `none`: neither is needed."""

EvidencePart = Literal["turn", "assertion"]
"""`turn`: a completed turn or a tool call."""

EVIDENCE_PARTS: tuple[EvidencePart, ...] = ("turn", "assertion")

_LACKS: dict[EvidencePart, str] = {
    "turn": "no completed turn or tool call",
    "assertion": "no assertion",
}
_REMEDIES: dict[EvidencePart, str] = {
    "turn": "record what the agent did (`with episode.turn(...) as turn:`)",
    "assertion": "assert something about it (asserts of helper modules count if the pytest "
    "setting `episode_assert_modules` names them)",
}
_OPT_OUT = ', or mark the test `episode(evidence="none")`'


def missing_evidence(episode: Episode) -> tuple[EvidencePart, ...]:
    """Return what a required episode lacks that would pass otherwise."""
    passes = episode.outcome == "passed" and not _is_over_budget(episode)
    if not passes or episode.gate != "required" or episode.evidence == "none":
        return ()
    if episode.evidence is None:
        return () if _holds_anything(episode) else EVIDENCE_PARTS
    found = {"turn": _has_turn(episode), "assertion": _has_assertion(episode)}
    return tuple(part for part in EVIDENCE_PARTS if not found[part])


def name_missing(missing: Sequence[EvidencePart]) -> str:
    """Return what is missing in words."""
    return " and ".join(_LACKS[part] for part in missing)


def no_evidence(missing: Sequence[EvidencePart]) -> str:
    """Return why an episode without evidence is an error, and what to do."""
    remedies = " and ".join(_REMEDIES[part] for part in missing)
    return f"no evidence: {name_missing(missing)}; {remedies}{_OPT_OUT}"


def _is_over_budget(episode: Episode) -> bool:
    return any(found.hard and found.observed is not None for found in episode.violations)


def _has_turn(episode: Episode) -> bool:
    if episode.trajectory is None:
        counts = episode.trajectory_summary
        return bool(counts.steps_count or counts.tool_calls_count)
    turns = episode.trajectory.turns
    # A request beyond the context window has an end that the test asked about, and no answer.
    if turns and episode.stop_reason in episode.allowed_stops:
        return True
    return any(turn.is_completed or turn.tool_calls for turn in turns)


def _has_assertion(episode: Episode) -> bool:
    return bool(episode.assertions) or episode.asserted or _has_measurement(episode)


def _has_measurement(episode: Episode) -> bool:
    return any(budget.used is not None for _, budget in episode.budgets.named())


def _holds_anything(episode: Episode) -> bool:
    """Say whether a file shows anything of an agent, or of a judgement."""
    counts = episode.trajectory_summary
    shown = (counts.steps_count, counts.tool_calls_count, episode.scores, episode.tokens)
    return any(shown) or episode.cost_usd is not None or _has_assertion(episode)
