"""Tool calls of OpenAI's Chat Completions: complete entries, and fragments of streamed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from ci_agent_eval.model_traffic.formats.json_values import (
    Json,
    get_object,
    get_objects,
    parse_arguments,
    parse_object,
)

FUNCTION_CALL = "function_call"
"""The position of the only call of older models, which has no index."""


def parse_call_entry(entry: Json) -> tuple[str, object] | None:
    """Return tool and arguments of an entry of `tool_calls`, a function or a custom tool."""
    custom = entry.get("custom")
    if isinstance(custom, dict):
        name = custom.get("name")
        return (name, custom.get("input")) if isinstance(name, str) else None
    return parse_function_call(get_object(entry, "function"))


def parse_function_call(function: Json) -> tuple[str, object] | None:
    """Return tool and arguments of a function's call; None without a name."""
    name = function.get("name")
    return (name, parse_arguments(function.get("arguments"))) if isinstance(name, str) else None


@dataclass(slots=True, eq=False)
class AssembledCall:
    """One call, assembled from the fragments received so far."""

    id: object
    name: str = ""
    text: str = ""
    custom: bool = False
    _others: Json = field(default_factory=dict)
    """Further keys, such as the signature that Gemini wants back."""

    def add_fragment(self, fragment: Json) -> None:
        """Append the next fragment."""
        self.custom = self.custom or isinstance(fragment.get("custom"), dict)
        piece = get_object(fragment, "custom" if self.custom else "function")
        name, text = piece.get("name"), piece.get("input" if self.custom else "arguments")
        self.name += name if isinstance(name, str) else ""
        self.text += text if isinstance(text, str) else ""
        others = {k: v for k, v in fragment.items() if v is not None and k not in _CALL_KEYS}
        self._others |= others

    def arguments(self) -> object:
        """Return the tool's arguments."""
        return self.text if self.custom else parse_arguments(self.text)

    @property
    def is_complete(self) -> bool:
        """Whether the arguments are complete; unknown, so False, for custom tools."""
        return not self.custom and parse_object(self.text) is not None

    def build_entry(self) -> Json:
        """Build the entry of `tool_calls` as a complete answer has it."""
        kind, key = ("custom", "input") if self.custom else ("function", "arguments")
        return {
            "id": self.id,
            "type": kind,
            **self._others,
            kind: {"name": self.name, key: self.text},
        }


_CALL_KEYS = ("index", "id", "type", "function", "custom")


_Call = TypeVar("_Call", bound=AssembledCall)


@dataclass(slots=True)
class ChoiceCalls(Generic[_Call]):
    """The calls of one choice in order."""

    create: Callable[[object], _Call]
    """Creates a call with an id."""
    _calls: list[_Call] = field(default_factory=list)
    _by_position: dict[object, _Call] = field(default_factory=dict)

    def __iter__(self) -> Iterator[_Call]:
        return iter(self._calls)

    def get_or_add(self, position: object, fragment: Json) -> tuple[_Call, bool]:
        """Return the call of a fragment, and whether the fragment starts it.

        Some providers give all calls of a response the same index, with different ids.
        """
        call_id = fragment.get("id")
        call = self._by_position.get(position)
        if call is not None and (not call_id or not call.id or call.id == call_id):
            return call, False
        call = self._by_position[position] = self.create(call_id)
        self._calls.append(call)
        return call, True


def iterate_fragments(choice: Json) -> Iterator[tuple[object, Json]]:
    """Yield the fragments of calls in a choice with their positions."""
    delta = get_object(choice, "delta")
    for entry in get_objects(delta, "tool_calls"):
        yield entry.get("index") if isinstance(entry.get("index"), int) else None, entry
    if isinstance(delta.get(FUNCTION_CALL), dict):
        yield FUNCTION_CALL, {"function": delta[FUNCTION_CALL]}
