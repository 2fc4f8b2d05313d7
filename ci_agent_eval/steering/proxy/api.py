"""What the proxy needs to know of an API to answer a model's calls in the client's place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ci_agent_eval.model_traffic.formats.assembler import AnswerReader
from ci_agent_eval.model_traffic.formats.json_values import Json
from ci_agent_eval.model_traffic.formats.sse import replace_data

Part = Literal["call", "reasoning", "text"]
"""A part of an answer; `reasoning`: the API refuses it in a history without the part after it."""


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A call in an answer that the client is to run."""

    id: str
    """The id that the call's result refers to; empty if it has none."""
    tool: str | None
    """None: a call that the proxy cannot answer."""
    arguments: object = None


class Joiner:
    """Renders the events of one or several answers, so that the client gets one answer."""

    is_continued = False
    """Whether the events are of a later answer."""

    def start_answer(self) -> None:
        """Continue with the events of the next answer."""
        self.is_continued = True

    def render(self, raw: bytes, data: Json | None) -> bytes:
        """Return the bytes of an event for the client; those of the first answer are unchanged."""
        changed = None if data is None else self.change(data)
        if data is None or not self.is_continued or changed is data:
            return raw
        return b"" if changed is None else replace_data(raw, changed)

    def change(self, data: Json) -> Json | None:
        """Note an event; return it as a later answer's event, or None to leave it out."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Api:
    """Functions that read and continue the answers of one API."""

    reader: AnswerReader
    """The reader of this format's answers."""
    no_calls: object
    """The `tool_choice` that lets the model answer with text only."""
    list_calls: Callable[[Json], list[ClientCall]]
    """Returns the calls of an answer that the client is to run."""
    find_obstacle: Callable[[Json, Json], str | None]
    """Returns why the answer to a request cannot be continued; None if it can."""
    extend_request: Callable[[Json, Json, Mapping[str, str]], Json]
    """Returns a request with the answer and the results of its calls, by their ids."""
    join_answers: Callable[[Json, Json], Json]
    """Returns an answer with what an earlier one has before its first call."""
    find_part: Callable[[Json], Part | None]
    """Returns the part of the answer that an event of a stream begins; None for others."""
    is_last: Callable[[bytes, Json | None], bool]
    """Returns whether an event is the last one of a streamed answer."""
    create_joiner: Callable[[], Joiner]
