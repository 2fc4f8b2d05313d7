"""The trajectory diff of a scenario: where the tool calls of both sides first differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ci_agent_eval.analysis.comparison.model import Divergence, DivergingEpisodes
from ci_agent_eval.render.escape import visible_line
from ci_agent_eval.render.numbers import count_noun, format_count

MOST_STEPS = 40
"""Most tool calls of a sequence that a comment shows."""
MOST_DIVERGING = 10
"""Most otherwise unchanged scenarios whose trajectory diff a comment shows."""

_STEP_LIMIT = 200
"""Characters of a tool's name and argument in a sequence."""


@dataclass(frozen=True, slots=True)
class TrajectoryDiff:
    """Both sequences of tool calls, and where they first differ."""

    place: str
    """The tool call and turn, in our own words."""
    argument: str | None
    """The first argument that differs, foreign text; None: the tools differ."""
    call: int
    """1-based tool call of the episode."""
    before: Sequence[str]
    """Names of tools, foreign text; at `call` with the argument that differs."""
    after: Sequence[str]
    episodes: str = ""
    """The episodes of this run that it shows, if not all; as `in the failing episodes`."""
    share_before: str = ""
    """How many episodes make these calls: `9 of 10 episodes`; empty: unknown."""
    share_after: str = ""


def build_diff(found: Divergence) -> TrajectoryDiff:
    """Return the diff with the argument that differs written at its call."""
    return TrajectoryDiff(
        describe_place(found),
        found.argument,
        found.call,
        _with_argument(found, found.before, found.argument_before),
        _with_argument(found, found.after, found.argument_after),
        _EPISODES[found.episodes][0],
        _describe_share(found.share_before, _EPISODES[found.episodes][1]),
        _describe_share(found.share_after, _EPISODES[found.episodes][2]),
    )


_EPISODES: dict[DivergingEpisodes, tuple[str, str, str]] = {
    "typical": ("", "episode", "episode"),
    "failing": ("in the failing episodes", "passing episode", "failing episode"),
    "over_budget": (
        "in the episodes over budget",
        "episode within budget",
        "episode over budget",
    ),
}


def _describe_share(share: tuple[int, int] | None, noun: str) -> str:
    if share is None:
        return ""
    noun = noun if share[1] == 1 else noun.replace("episode", "episodes")
    return f"{format_count(share[0])} of {format_count(share[1])} {noun}"


def _with_argument(found: Divergence, names: Sequence[str], value: str | None) -> Sequence[str]:
    at = found.call - 1
    has_argument = found.argument_before is not None or found.argument_after is not None
    if not has_argument or at >= len(names):
        return names
    given = "" if value is None else f"{found.argument}={value}"
    return (*names[:at], f"{names[at]}({given})", *names[at + 1 :])


def describe_place(found: Divergence) -> str:
    """Return the tool call and turn of the first difference, in our own words."""
    if not found.call_of_turn:
        return f"turn {format_count(found.turn)}"
    return f"tool call {format_count(found.call_of_turn)} of turn {format_count(found.turn)}"


def join_steps(names: Sequence[str], call: int, arrow: str) -> str:
    """Return tool calls on one line; of a long sequence the part around the difference."""
    start = max(0, min(call - MOST_STEPS // 2, len(names) - MOST_STEPS))
    shown = [visible_line(name, _STEP_LIMIT) for name in names[start : start + MOST_STEPS]]
    if start:
        shown.insert(0, f"… ({count_noun(start, 'call')} before)")
    if (rest := len(names) - start - MOST_STEPS) > 0:
        shown.append(f"… ({format_count(rest)} more)")
    return arrow.join(shown) or "(no tool call)"
