"""The protocol of the formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ci_agent_eval.model_traffic.messages import (
    FormatName,
    ModelAnswer,
    ModelRequest,
    RequestHead,
)


class UnreadableTrafficError(ValueError):
    """Raised for a body that does not have the shape of its format; the message says where."""


@dataclass(frozen=True, slots=True)
class HTTPAnswer:
    """An HTTP answer that we give instead of the provider."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case; without `content-length`."""
    chunks: tuple[bytes, ...] = ()
    """The body in the pieces in which it is sent; a stream has one for each event."""


class Assembler(Protocol):
    """Assembles the chunks of one answer's body, streamed or not."""

    @property
    def is_ended(self) -> bool:
        """Whether the format's end was seen (`[DONE]`, `message_stop`, a complete JSON value)."""

    @property
    def is_complete(self) -> bool:
        """Whether nothing is missing if the body ends now: some servers send no end event."""

    @property
    def answer(self) -> ModelAnswer:
        """The answer, of the chunks so far."""

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes. Never raises: an unreadable body becomes `answer.error`."""


class Format(Protocol):
    """Reads and writes one HTTP format. Stateless."""

    @property
    def name(self) -> FormatName:
        """The name in records and cassettes."""

    path: re.Pattern[str]
    """Pattern in the path of its requests, after any prefix."""
    conversation: str
    """Key of a request that holds the conversation."""

    def parse_head(self, path: str, body: bytes, /) -> RequestHead:
        """Parse a request without its messages and tools. Raises UnreadableTrafficError."""

    def parse_request(self, path: str, body: bytes, /) -> ModelRequest:
        """Parse a request. Raises UnreadableTrafficError."""

    def create_assembler(self, status: int, headers: Mapping[str, str]) -> Assembler:
        """Create the assembler of an answer; header names are in lower case."""

    def build_refusal(self, message: str) -> HTTPAnswer:
        """Build the refusal that no client retries: status 400 in the provider's own shape."""

    def build_key(self, path: str, body: bytes, /) -> str:
        """Return the canonical JSON of a request for replay: equal requests give equal texts.

        Ids that vary between runs are numbered by first appearance; transport options, host and
        headers are left out. Raises UnreadableTrafficError.
        """
