"""What the proxy needs to know of an API to answer a model's calls in the client's place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from ci_agent_eval.model_traffic.formats.assembler import AnswerReader
from ci_agent_eval.model_traffic.formats.json_values import Json

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


class Joiner(Protocol):
    """Renders the events of one or several answers, so that the client gets one answer."""

    def start_answer(self) -> None:
        """Continue with the events of the next answer."""

    def render(self, raw: bytes, data: Json | None) -> bytes:
        """Return the bytes of an event for the client; those of the first answer are unchanged."""


class Api(Protocol):
    """Reads and continues the answers of one API. Stateless."""

    @property
    def reader(self) -> AnswerReader:
        """The reader of this format's answers."""

    @property
    def no_calls(self) -> object:
        """The `tool_choice` that lets the model answer with text only."""

    def list_calls(self, body: Json) -> list[ClientCall]:
        """Return the calls of an answer that the client is to run."""

    def find_obstacle(self, request: Json, body: Json) -> str | None:
        """Return why an answer cannot be continued; None if it can."""

    def extend_request(self, request: Json, body: Json, results: Mapping[str, str]) -> Json:
        """Return the request with the answer and the results of its calls, by their ids."""

    def join_answers(self, earlier: Json, body: Json) -> Json:
        """Return an answer with what an earlier one has before its first call."""

    def find_part(self, data: Json) -> Part | None:
        """Return the part of the answer that an event of a stream begins; None for others."""

    def is_last(self, raw: bytes, data: Json | None) -> bool:
        """Return whether an event is the last one of a streamed answer."""

    def create_joiner(self) -> Joiner:
        """Return what joins the events of answers."""
