"""A pair of exchanges as the lines of a diff: user, tool calls and answer, before and now.

Every line of foreign text has a prefix, so that none can look like a heading of a part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from ci_agent_eval.analysis.behaviour_pairs import BehaviourPair, CutText, ExchangeSide
from ci_agent_eval.analysis.comparison.model import Divergence
from ci_agent_eval.render.escape import more_characters, visible_line
from ci_agent_eval.render.numbers import format_count
from ci_agent_eval.render.trajectory_diff import build_diff, join_steps

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
    starts = (mark for mark in (_BEFORE, _NOW) if pair.before is not None or mark == _NOW)
    return [next(one for one in lines if one.startswith(mark)) for mark in starts if lines]


def list_trajectory_lines(found: Divergence) -> list[str]:
    """Return the tool calls of both sides of a comparison, for want of a conversation."""
    diff = build_diff(found)
    before, now = (join_steps(names, diff.call, " → ") for names in (diff.before, diff.after))
    if before == now:
        return []
    sides = ((_BEFORE, before, diff.share_before), (_NOW, now, diff.share_after))
    lines = (f"{mark}{calls}{f'  ({share})' if share else ''}" for mark, calls, share in sides)
    return [f"@@ tool calls: {_BOTH} @@", *lines]


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
            yield "@@ tool calls: now (+) @@"
            yield from _prefix(_NOW, _wrap_calls(now))
    elif (before.calls, before.more_calls) != (now.calls, now.more_calls):
        yield f"@@ tool calls: {_BOTH} @@"
        yield from _prefix(_BEFORE, _wrap_calls(before))
        yield from _prefix(_NOW, _wrap_calls(now))


def _list_answer_lines(pair: BehaviourPair) -> Iterator[str]:
    before, now = pair.before, pair.now
    if before is None:
        yield "@@ answer: now (+) @@"
        yield from _prefix(_NOW, _wrap_text(now.answer, ANSWER_LINES, _NO_ANSWER))
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
