"""What an agent did before and now, as diffs: exchanges, tool calls, and watched states.

Every line of foreign text has a prefix, so that none can look like a heading of a part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from ci_agent_eval.analysis.behaviour_pairs import (
    MAX_STATE_VALUE,
    BehaviourPair,
    ChangedPart,
    CutText,
    ExchangeSide,
    StateSummary,
)
from ci_agent_eval.analysis.comparison.model import Divergence, DivergingEpisodes
from ci_agent_eval.render.escape import more_characters, visible_line
from ci_agent_eval.render.numbers import count_noun, format_count

MOST_STEPS = 40
"""Most tool calls of a sequence that a comment shows."""
MOST_DIVERGING = 10
"""Most otherwise unchanged scenarios whose trajectory diff a comment shows."""

_STEP_LIMIT = 200
"""Characters of a tool's name and argument in a sequence."""


_EPISODES: dict[DivergingEpisodes, tuple[str, str, str]] = {
    "typical": ("", "episode", "episode"),
    "failing": ("in the failing episodes", "passing episode", "failing episode"),
    "over_budget": (
        "in the episodes over budget",
        "episode within budget",
        "episode over budget",
    ),
}


def _describe_share(share: tuple[int, int], noun: str) -> str:
    noun = noun if share[1] == 1 else noun.replace("episode", "episodes")
    return f"{format_count(share[0])} of {format_count(share[1])} {noun}"


def describe_divergence(found: Divergence) -> str:
    """Return the tool call of the first difference, and which episodes show it."""
    episodes = _EPISODES[found.episodes][0]
    place = f"first divergence at tool call {format_count(found.call)}"
    return f"{place}, {episodes}" if episodes else place


def _join_steps(names: Sequence[str], call: int) -> str:
    """Return tool calls on one line; of a long sequence the part around the difference."""
    start = max(0, min(call - MOST_STEPS // 2, len(names) - MOST_STEPS))
    shown = [visible_line(name, _STEP_LIMIT) for name in names[start : start + MOST_STEPS]]
    if start:
        shown.insert(0, f"… ({count_noun(start, 'call')} before)")
    if (rest := len(names) - start - MOST_STEPS) > 0:
        shown.append(f"… ({format_count(rest)} more)")
    return " → ".join(shown) or "(no tool call)"


WIDTH = 70
"""Columns of a line without its prefix."""
USER_LINES = 2
CALL_LINES = 2
ANSWER_LINES = 3
_LIMIT = 2_000

_SAME, _BEFORE, _NOW = "  ", "- ", "+ "
_BOTH = "before (-), now (+)"
_NO_CALL = "(no call)"
_NO_ANSWER = "(no answer)"


def list_diff_lines(pair: BehaviourPair, *, only_calls: bool = False) -> list[str]:
    """Return the lines of the pair; parts that are equal on both sides are left out.

    Empty: the agent does the same on both sides.
    `only_calls` leaves the answers out, which a budget is not about.
    """
    calls = list(_list_call_lines(pair))
    if only_calls:
        return calls
    behaviour = [*calls, *_list_answer_lines(pair)]
    return [*_list_user_lines(pair), *behaviour] if behaviour else []


def list_changed_answer(pair: BehaviourPair) -> list[str]:
    """Return the first line of each side's answer from where they differ; empty: they do not."""
    lines = list(_list_answer_lines(pair))
    starts = (_SAME,) if pair.before is None else (_BEFORE, _NOW)
    return [next(one for one in lines if one.startswith(mark)) for mark in starts if lines]


def list_trajectory_lines(found: Divergence) -> list[str]:
    """Return the tool calls of both sides of a comparison, where a conversation is missing."""
    _, *nouns = _EPISODES[found.episodes]
    before, now = (_join_steps(names, found.call) for names in (found.before, found.after))
    sides = zip((found.share_before, found.share_after), nouns, strict=True)
    shares = [_describe_share(share, noun) for share, noun in sides]
    return [
        f"@@ tool calls: {_BOTH} @@",
        f"{_BEFORE}{before}  ({shares[0]})",
        f"{_NOW}{now}  ({shares[1]})",
    ]


def _list_user_lines(pair: BehaviourPair) -> Iterator[str]:
    before, now, turn = pair.before, pair.now, format_count(pair.turn)
    if before is not None and before.user != now.user:
        yield f"@@ user, turn {turn}: {_BOTH} @@"
        yield from _prefix(_BEFORE, _wrap_text(before.user, USER_LINES, _NO_ANSWER))
        yield from _prefix(_NOW, _wrap_text(now.user, USER_LINES, _NO_ANSWER))
    elif now.user.text:
        yield f"@@ user, turn {turn} @@"
        yield from _prefix(_SAME, _wrap_text(now.user, USER_LINES, ""))


def _list_call_lines(pair: BehaviourPair) -> Iterator[str]:
    before, now = pair.before, pair.now
    if before is None:
        if now.calls:
            yield "@@ tool calls @@"
            yield from _prefix(_SAME, _wrap_calls(now))
    elif (before.calls, before.more_calls) != (now.calls, now.more_calls):
        yield f"@@ tool calls: {_BOTH} @@"
        yield from _prefix(_BEFORE, _wrap_calls(before))
        yield from _prefix(_NOW, _wrap_calls(now))


def _list_answer_lines(pair: BehaviourPair) -> Iterator[str]:
    before, now = pair.before, pair.now
    if before is None:
        yield "@@ answer @@"
        yield from _prefix(_SAME, _wrap_text(now.answer, ANSWER_LINES, _NO_ANSWER))
    elif before.answer != now.answer:
        yield f"@@ answer: {_BOTH} @@"
        yield from _prefix(_BEFORE, _wrap_text(before.answer, ANSWER_LINES, _NO_ANSWER))
        yield from _prefix(_NOW, _wrap_text(now.answer, ANSWER_LINES, _NO_ANSWER))


def _prefix(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line


def _wrap_text(cut: CutText, most: int, empty: str) -> Sequence[str]:
    """Return the first lines of a text, and the number of characters left out."""
    text = visible_line(cut.text, _LIMIT).strip()
    lines = wrap(text, WIDTH)
    if not lines:
        return [empty]
    if len(lines) <= most and not cut.left_out:
        return lines
    shown = lines[:most]
    whole = len(text) + cut.left_out
    note = f" {more_characters(whole)}"
    # The note has at most as many digits as this one.
    if len(shown[-1]) > WIDTH - len(note):
        shown[-1] = shown[-1][: WIDTH - len(note)].rpartition(" ")[0].rstrip()
    left_out = whole - len(" ".join(shown))
    shown[-1] += f" {more_characters(left_out)}"
    return shown


def _wrap_calls(side: ExchangeSide) -> Sequence[str]:
    """Return the tool calls that fit into the lines, and the number of the others."""
    calls = [visible_line(call, _LIMIT) for call in side.calls]
    if not calls:
        return [_NO_CALL]
    for kept in range(len(calls), 0, -1):
        rest = len(calls) - kept + side.more_calls
        more = [f"… {format_count(rest)} more"] if rest else []
        lines = wrap(" → ".join([*calls[:kept], *more]), WIDTH)
        if len(lines) <= CALL_LINES:
            return lines
    return [*lines[: CALL_LINES - 1], f"{lines[CALL_LINES - 1][: WIDTH - 1]}…"]


_NAME = 120
"""Characters of the name of a state, an entry and its field."""


def list_state_lines(states: Iterable[StateSummary]) -> list[str]:
    """Return the lines; empty: nothing changed. Each line of foreign text has a prefix."""
    return [line for state in states for line in _list_lines(state)]


def _list_lines(state: StateSummary) -> Iterator[str]:
    yield "@@ state: before the episode (-), after it (+) @@"
    yield f"  {visible_line(state.name, _NAME)}"
    if state.error is not None:
        yield f"  {visible_line(state.error, MAX_STATE_VALUE)}"
    for part in state.parts:
        yield from _list_part_lines(part)
    if state.more:
        yield f"  … {count_noun(state.more, 'more change')}"


def _list_part_lines(part: ChangedPart) -> Iterator[str]:
    name = visible_line(part.name, _NAME)
    for mark, value in (("-", part.before), ("+", part.after)):
        if value is not None:
            yield f"{mark} {name}: {visible_line(value, MAX_STATE_VALUE + 1)}"
