"""The interface through which the players of tools and of model traffic use their session."""

from __future__ import annotations

from typing import Any, Protocol

from ci_agent_eval.engine.cassette.canonical import Json, Redact
from ci_agent_eval.engine.cassette.document import RecordedRequest, Take


class PlayerSession(Protocol):
    """A `CassetteSession`, as its players use it."""

    refusals: list[str]
    """Error messages of the requests that were refused or cannot be recorded."""

    @property
    def mode(self) -> str:
        """Mode of the cassette."""

    @property
    def redact(self) -> Redact:
        """Removes secrets from a value."""

    @property
    def recorded_take(self) -> Take:
        """The recorded exchanges for this iteration."""

    def normalize(self, value: Any) -> Any:
        """Return a value of a request without secrets, with the rules applied."""

    def find_exchange(self, request: RecordedRequest) -> int | None:
        """Return the number of the exchange that answers a request; None if there is none.

        Raises CassetteMissError in replay.
        """

    def reserve_response(self, request: RecordedRequest) -> int:
        """Reserve the next place for a live response; return its number."""

    def free_response(self, number: int) -> None:
        """Free the place of an unrecorded response, for the next attempt of its request."""

    def store_response(self, number: int, response: Json) -> None:
        """Store a live response at its reserved place."""
