"""What the proxy needs to know of an API to answer a model's call in the client's place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ci_agent_eval.model_traffic.formats.assembler import AnswerReader
from ci_agent_eval.model_traffic.formats.json_values import Json


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A call in an answer that the client is to run."""

    id: str
    """The id that the call's result refers to; empty if it has none."""
    tool: str | None
    """None: a call that the proxy cannot answer, and so never holds."""
    arguments: object = None


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call that the client never sees, with the result that the model gets instead."""

    position: int
    """Number of parts of the answer before it that the client sees."""
    part: Json
    """The call as the model made it."""
    result: Json


@dataclass(frozen=True, slots=True)
class HeldAnswer:
    """An answer of the model of which at least one call is held."""

    held: tuple[HeldCall, ...]
    has_client_calls: bool
    """Whether the client runs other calls of it, so that the results travel with the client's."""
    shown_keys: tuple[frozenset[str], ...] = ()
    """Keys of the parts that the client sees, which are found again in its later requests."""
    shown_message: Json = field(default_factory=dict)
    """Chat Completions: the message without held calls, as the client merges text of answers."""

    @property
    def results(self) -> list[Json]:
        """The results of the held calls, in order."""
        return [call.result for call in self.held]


FindHeld = Callable[[Sequence[str]], Sequence[HeldAnswer]]
"""Returns the answers with held calls behind an answer in a client's history, by its anchors."""

Event = tuple[bytes, Json | None]
"""An event of a stream: its bytes, and its data if that is a JSON object."""


class EventEditor(Protocol):
    """Edits the events of one or several answers, so that the client gets one answer."""

    def start_answer(self) -> None:
        """Continue with the events of the next answer."""

    def find_started(self, data: Json) -> Iterable[tuple[object, str]]:
        """Return the calls for the client that an event starts, with their tools."""

    def find_ended(self, data: Json) -> Iterable[object]:
        """Return the calls that an event completes."""

    def ends_calls(self, data: Json) -> bool:
        """Return whether all calls of the answer are complete with this event."""

    def is_last(self, event: Event) -> bool:
        """Return whether this is the last event of the answer."""

    def remove_calls(
        self, events: Sequence[Event], ids: Collection[str], *, is_continued: bool
    ) -> Sequence[Event]:
        """Return the events without these calls; if the answer is continued, without its end."""

    def set_merged(self, body: Json) -> None:
        """Set the complete body that the client gets, before the end is rendered."""

    def render(self, event: Event) -> bytes:
        """Return the bytes for the client; unchanged in an answer without a held call."""


class Dialect(Protocol):
    """Reads and changes the requests and answers of one API. Stateless."""

    @property
    def reader(self) -> AnswerReader:
        """The reader of this format's answers."""

    @property
    def has_stored_answers(self) -> bool:
        """Whether clients refer to earlier answers by their ids."""

    def list_calls(self, body: Json) -> list[ClientCall]:
        """Return the calls of an answer that the client is to run."""

    def is_cut_off(self, body: Json) -> bool:
        """Return whether an answer ended before its regular end."""

    def find_obstacle(self, request: Json, /) -> str | None:
        """Return why the answer to a request cannot be continued; None if it can."""

    def hold_calls(self, body: Json, messages: Mapping[str, str]) -> tuple[Json, HeldAnswer]:
        """Return the answer without the calls with a message, and what has to be remembered."""

    def build_request(self, request: Json, body: Json, held: HeldAnswer, /) -> Json:
        """Return the request that continues `request` after an answer with held calls."""

    def forbid_calls(self, request: Json) -> Json:
        """Return a request that lets the model answer with text only."""

    def merge_answers(self, shown: Json, body: Json) -> Json:
        """Return one answer for the client: the part that was sent already, and the next answer."""

    def count_answers(self, request: Json) -> int:
        """Return the number of the model's answers in a client's history."""

    def list_anchors(self, body: Json, number: int) -> list[str]:
        """Return texts by which an answer is found again, with the number of answers before it."""

    def restore(self, request: Json, find: FindHeld) -> bool:
        """Insert held calls and their results into a request; return whether there were any."""

    def create_editor(self) -> EventEditor:
        """Return an editor for the events of an answer."""
