"""Pairs of exchanges of baseline and head, and the changes of watched states. Pure.

`docs/decisions/0055-comment-by-cause.md` explains the choices.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product, zip_longest
from typing import Any, NamedTuple

from ci_agent_eval.contract.base import is_equal_json
from ci_agent_eval.contract.wording import build_natural_key, pluralize

MAX_TEXT = 600
"""Characters kept of a message, from the first sentence that differs."""
MAX_CALLS = 20
"""Tool calls kept of an exchange."""
_LEADING_CALLS = 3
"""Number of these before the first one that differs."""
MAX_ARGUMENTS = 80
"""Characters kept of the arguments of the first tool call that differs."""
MAX_STATE_VALUE = 200
"""Characters kept of a value of a state, and of a line of a text."""
_MAX_NAME = 80
_MAX_COMPARED = 20_000
"""Characters of an answer that are compared."""

Renames = Mapping[str, str]
"""New names of tools to their names in the baseline."""


class ChangedPart(NamedTuple):
    """A field or a line of an entry, or all of it, on both sides; foreign text."""

    name: str
    """The entry with the field, such as `orders/1.status`."""
    before: str | None = None
    """Shortened JSON, or a line of a text; None: it was added."""
    after: str | None = None
    """None: it was removed."""


class StateSummary(NamedTuple):
    """The changes of a watched database, folder or mock."""

    name: str
    """Foreign text."""
    parts: tuple[ChangedPart, ...] = ()
    more: int = 0
    """Number of changed entries, fields and lines left out."""
    error: str | None = None
    """Why the final state is unknown; foreign text."""


class CutText(NamedTuple):
    """A message on one line, from the first sentence that differs; foreign text."""

    text: str = ""
    left_out: int = 0
    """Number of characters left out after it."""


class ExchangeSide(NamedTuple):
    """An exchange on one side: a message of the user, tool calls, and the agent's answer."""

    user: CutText = CutText()
    calls: tuple[str, ...] = ()
    """Tool calls in order; the first that differs has its arguments. Foreign text."""
    more_calls: int = 0
    """Number of tool calls left out after them."""
    answer: CutText = CutText()


class BehaviourPair(NamedTuple):
    """An exchange of a scenario before and now."""

    scenario_id: str
    agent: str | None
    turn: int
    """1-based message of the user."""
    now: ExchangeSide
    before: ExchangeSide | None = None
    """None: no passing conversation of the baseline is known."""
    faults: tuple[str, ...] = ()
    """The faults on purpose that the episode of `now` had."""
    states: tuple[StateSummary, ...] = ()
    """What the episode of `now` changed in its watched states."""


class _Call(NamedTuple):
    tool: str
    arguments: Mapping[str, Any] | None


class ParsedExchange(NamedTuple):
    """A message of the user, the tool calls that followed, and the last answer."""

    user: str
    calls: tuple[_Call, ...]
    answer: str


class EpisodeExchanges(NamedTuple):
    """The exchanges of one iteration."""

    iteration: int
    exchanges: tuple[ParsedExchange, ...]
    states: tuple[StateSummary, ...] = ()
    faults: tuple[str, ...] = ()


def list_faults(faults: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the injected faults of an episode, as its JSON has them, in words."""
    return tuple(
        f"injected fault: {fault['kind'].replace('_', ' ')} of {fault['tool']} "
        f"({pluralize(fault['injected'], 'call')})"
        for fault in faults
        if fault.get("injected")
    )


def parse_conversation(
    iteration: int,
    turns: Iterable[Mapping[str, Any]],
    states: tuple[StateSummary, ...] = (),
    faults: Iterable[Mapping[str, Any]] = (),
) -> EpisodeExchanges:
    """Split the turns of an episode, as its JSON has them, into exchanges."""
    found: list[list[Mapping[str, Any]]] = []
    for turn in (turn for turn in turns if not turn.get("injected")):
        if turn.get("role") == "user" or not found:
            found.append([])
        found[-1].append(turn)
    exchanges = tuple(map(_build_exchange, found))
    return EpisodeExchanges(iteration, exchanges, states, list_faults(faults))


def _build_exchange(turns: Sequence[Mapping[str, Any]]) -> ParsedExchange:
    user = turns[0].get("content", "") if turns[0].get("role") == "user" else ""
    calls = [call for turn in turns for call in turn.get("tool_calls", ())]
    answers = [turn.get("content", "") for turn in turns if turn.get("role") == "assistant"]
    answer = next((text for text in reversed(answers) if text.strip()), "")
    return ParsedExchange(_join_blanks(user), tuple(map(_build_call, calls)), _join_blanks(answer))


def _build_call(call: Mapping[str, Any]) -> _Call:
    arguments = call.get("arguments")
    return _Call(str(call.get("name", "")), arguments if isinstance(arguments, dict) else None)


def _join_blanks(text: str) -> str:
    return " ".join(text.split())


def choose_pair(
    name: tuple[str, str | None],
    now: Sequence[EpisodeExchanges],
    before: Sequence[EpisodeExchanges],
    renames: Renames,
) -> BehaviourPair | None:
    """Return the pair that shows the difference with the fewest words; None: nothing to show.

    Equal messages of the user come first, then the fewest characters in both answers, then lower
    iterations.
    """
    now, before = ([one for one in side if one.exchanges] for side in (now, before))
    if not now:
        return None
    if not before:
        alone = min(now, key=lambda one: (len(one.exchanges[-1].answer), one.iteration))
        pair = _build_pair(name, len(alone.exchanges), alone.exchanges[-1], None)
        return pair._replace(states=alone.states, faults=alone.faults)
    pairs = ((head, base, _find_turn(head, base, renames)) for head, base in product(now, before))
    head, base, at = min(pairs, key=lambda pair: _rank_pair(*pair))
    pair = _build_pair(name, at + 1, head.exchanges[at], base.exchanges[at])
    return pair._replace(states=head.states, faults=head.faults)


def _find_turn(head: EpisodeExchanges, base: EpisodeExchanges, renames: Renames) -> int:
    """Return the first exchange with other tools, else with other arguments, else the last."""
    both = list(zip(head.exchanges, base.exchanges, strict=False))
    for find in (_find_other_tool, _find_other_arguments):
        for at, (new, old) in enumerate(both):
            if find(old.calls, new.calls, renames) is not None:
                return at
    return len(both) - 1


def _rank_pair(
    head: EpisodeExchanges, base: EpisodeExchanges, at: int
) -> tuple[bool, int, int, int]:
    new, old = head.exchanges[at], base.exchanges[at]
    length = len(new.answer) + len(old.answer)
    return new.user != old.user, length, head.iteration, base.iteration


def _find_other_tool(before: Sequence[_Call], now: Sequence[_Call], renames: Renames) -> int | None:
    for at, (old, new) in enumerate(zip_longest(before, now)):
        if old is None or new is None or old.tool != renames.get(new.tool, new.tool):
            return at
    return None


def _find_other_arguments(
    before: Sequence[_Call], now: Sequence[_Call], _renames: Renames
) -> int | None:
    for at, (old, new) in enumerate(zip(before, now, strict=False)):
        if old.arguments != new.arguments:
            return at
    return None


def _build_pair(
    name: tuple[str, str | None],
    turn: int,
    now: ParsedExchange,
    before: ParsedExchange | None,
) -> BehaviourPair:
    if before is None:
        side = ExchangeSide(_cut(now.user), *_format_calls(now.calls, 0), answer=_cut(now.answer))
        return BehaviourPair(*name, turn, side)
    # A tool that was renamed is shown with its arguments, too.
    at = _find_other_tool(before.calls, now.calls, {})
    if at is None:
        at = _find_other_arguments(before.calls, now.calls, {})
    old_answer, new_answer = cut_from_differing_sentence(before.answer, now.answer)
    new, old = (
        ExchangeSide(_cut(one.user), *_format_calls(one.calls, at), answer=answer)
        for one, answer in ((now, new_answer), (before, old_answer))
    )
    return BehaviourPair(*name, turn, new, old)


def _cut(text: str, start: int = 0) -> CutText:
    part = text[start : start + MAX_TEXT]
    return CutText(f"{'… ' if start else ''}{part}", len(text) - start - len(part))


_SENTENCE_END = re.compile(r"[.!?:;…] ")


def cut_from_differing_sentence(before: str, after: str) -> tuple[CutText, CutText]:
    """Cut both texts to start at the sentence with the first word that differs."""
    old, new = (text[:_MAX_COMPARED].split(" ") for text in (before, after))
    pairs = enumerate(zip(old, new, strict=False))
    same = next((at for at, (a, b) in pairs if a != b), min(len(old), len(new)))
    if same in {len(old), len(new)}:
        same = max(same - 1, 0)  # one ends where the other goes on: show the last word of both
    common = " ".join(new[:same]) + " " if same else ""
    ends = [found.end() for found in _SENTENCE_END.finditer(common)]
    start = ends[-1] if ends else 0
    return _cut(before, start), _cut(after, start)


def _format_calls(calls: Sequence[_Call], at: int | None) -> tuple[tuple[str, ...], int]:
    """Return the calls around the first one that differs, and the number of those after them."""
    shown = [
        _format_call(call) if place == at else call.tool[:_MAX_NAME]
        for place, call in enumerate(calls)
    ]
    start = max(0, min(at or 0, len(shown) - 1) - _LEADING_CALLS)
    kept = shown[start : start + MAX_CALLS]
    return (*(["…"] if start else []), *kept), len(shown) - start - len(kept)


def _format_call(call: _Call) -> str:
    if not call.arguments:
        return call.tool[:_MAX_NAME]
    text = ", ".join(f"{key}={_format_value(value)}" for key, value in call.arguments.items())
    cut = f"{text[:MAX_ARGUMENTS]}…" if len(text) > MAX_ARGUMENTS else text
    return f"{call.tool[:_MAX_NAME]}({cut})"


def _format_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


MAX_CHANGES = 12
"""Changed entries kept of a state in the example of a cause."""
MAX_PARTS = 8
"""Changed fields kept of an entry, and changed lines of a text."""
_MAX_LINES = 2_000
"""Lines of a text that are compared."""


def summarize_states(
    states: Iterable[Mapping[str, Any]], most: int = MAX_CHANGES
) -> tuple[StateSummary, ...]:
    """Summarize the states of an episode, as its JSON has them, if something changed in them."""
    found = (_summarize_state(state, most) for state in states)
    return tuple(one for one in found if one.parts or one.more or one.error)


def _summarize_state(state: Mapping[str, Any], most: int) -> StateSummary:
    changes = sorted(state.get("changes", ()), key=lambda one: build_natural_key(one["entry"]))
    parts: list[ChangedPart] = []
    more = max(0, len(changes) - most) + state.get("omitted_changes", 0)
    for change in changes[:most]:
        found = list(_list_parts(change))
        parts += found[:MAX_PARTS]
        more += max(0, len(found) - MAX_PARTS)
    return StateSummary(state["name"], tuple(parts), more, state.get("error"))


def _list_parts(change: Mapping[str, Any]) -> Iterator[ChangedPart]:
    before, after = change.get("before"), change.get("after")
    if before is None or after is None:
        sides = (None if side is None else _shorten(_encode(side)) for side in (before, after))
        yield ChangedPart(change["entry"], *sides)
        return
    for field in sorted({*before, *after}):
        yield from _list_field_parts(f"{change['entry']}.{field}", before, after, field)


def _list_field_parts(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any], field: str
) -> Iterator[ChangedPart]:
    if field not in before or field not in after:
        sides = (_shorten(_encode(one[field])) if field in one else None for one in (before, after))
        yield ChangedPart(name, *sides)
        return
    old, new = before[field], after[field]
    if isinstance(old, str) and isinstance(new, str) and ("\n" in old or "\n" in new):
        yield from _list_line_parts(name, old, new)
    elif not is_equal_json(old, new):
        yield ChangedPart(name, _shorten(_encode(old)), _shorten(_encode(new)))


def _list_line_parts(name: str, before: str, after: str) -> Iterator[ChangedPart]:
    """Yield the lines of a text that differ, the removed ones of each place first."""
    from difflib import SequenceMatcher  # noqa: PLC0415 - few reports have a changed text

    old, new = (text.split("\n")[:_MAX_LINES] for text in (before, after))
    for kind, start, end, new_start, new_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        if kind != "equal":
            yield from (ChangedPart(name, before=_shorten(line)) for line in old[start:end])
            yield from (ChangedPart(name, after=_shorten(line)) for line in new[new_start:new_end])


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_STATE_VALUE else f"{text[:MAX_STATE_VALUE]}…"


_encode = json.JSONEncoder(ensure_ascii=False, sort_keys=True).encode
