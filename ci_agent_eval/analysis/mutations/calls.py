"""Changes of tool calls: dropped, repeated, reordered, with another argument, unconfirmed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from ci_agent_eval.analysis.mutations.recorded_transcript import (
    CallPlace,
    Mutant,
    RecordedTranscript,
    asks_to_agree,
    build_mutant,
)
from ci_agent_eval.contract.mutations import Mutation
from ci_agent_eval.contract.trajectory import ToolCall


def drop_calls(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript without each tool call."""
    for place in recorded.calls:
        mutation = _describe_call("drop_call", place)
        yield build_mutant(mutation, recorded.replace_call(place).remove_empty_turn(place.turn))


def repeat_calls(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript with each tool call made twice in a row."""
    for place in recorded.calls:
        again = copy_call(place.call, 2)
        mutation = _describe_call("repeat_call", place)
        yield build_mutant(mutation, recorded.replace_call(place, place.call, again))


def copy_call(call: ToolCall, number: int) -> ToolCall:
    """Return a repetition of a call, with an id that no other call has."""
    return call.model_copy(update={"id": call.id and f"{call.id}-{number}"})


def reorder_calls(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript with each two different neighbouring calls exchanged."""
    for first, second in pairwise(recorded.calls):
        if _get_content(first.call) != _get_content(second.call):
            mutation = _describe_call("reorder_calls", first, other=second.call.name)
            changed = recorded.replace_call(first, second.call)
            yield build_mutant(mutation, changed.replace_call(second, first.call))


def _get_content(call: ToolCall) -> tuple[str, Any]:
    return call.name, call.arguments


def change_arguments(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript with each argument of each call changed."""
    for place in recorded.calls:
        for leaf in _list_leaves(place.call.arguments):
            after = _change_value(leaf)
            mutation = _describe_call("change_argument", place).model_copy(
                update={"argument": leaf.name, "before": leaf.value, "after": after}
            )
            arguments = _replace_leaf(place.call.arguments, leaf.path, after)
            changed = place.call.model_copy(update={"arguments": arguments})
            yield build_mutant(mutation, recorded.replace_call(place, changed))


def skip_confirmations(recorded: RecordedTranscript) -> Iterator[Mutant]:
    """Yield the transcript with the calls after each yes-or-no question made before its answer.

    The texts are unchanged: the agent acts, asks, and the user says yes.
    """
    questions = {reply.number: reply for reply in recorded.replies if asks_to_agree(reply.text)}
    for number, turns in enumerate(recorded.exchanges, start=1):
        asked = questions.get(number - 1)
        confirmed = [place for place in recorded.calls if place.turn in turns]
        if asked is None or not confirmed:
            continue
        changed = recorded
        for turn in sorted({place.turn for place in confirmed}, reverse=True):
            changed = changed.edit_calls(turn, lambda _: ()).remove_empty_turn(turn)
        early = tuple(place.call for place in confirmed)
        changed = changed.edit_calls(asked.turn, lambda old, early=early: (*old, *early))  # type: ignore[misc]
        mutation = _describe_call("skip_confirmation", confirmed[0])
        yield build_mutant(mutation.model_copy(update={"answer": asked.number}), changed)


def _describe_call(kind: Any, place: CallPlace, other: str | None = None) -> Mutation:
    return Mutation(kind=kind, call=place.number, tool=place.call.name, other=other)


class _Leaf(NamedTuple):
    """A value in the arguments of a call that contains no other value."""

    path: tuple[str | int, ...]
    value: Any

    @property
    def name(self) -> str:
        """The path with dots; `arguments` for arguments that are one value."""
        return ".".join(map(str, self.path)) or "arguments"


def _list_leaves(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[_Leaf]:
    """Yield the texts, numbers and booleans of an argument."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _list_leaves(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _list_leaves(inner, (*path, index))
    elif value is not None:
        yield _Leaf(path, value)


def _change_value(leaf: _Leaf) -> Any:
    """Return another value of the same type."""
    value = leaf.value
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if value + 1 != value else -value
    names = [key for key in leaf.path if isinstance(key, str)]
    other = f"another {names[-1] if names else 'value'}"
    return other if other != value else f"yet {other}"


def _replace_leaf(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = _replace_leaf(value[path[0]], path[1:], new)
    return copy
