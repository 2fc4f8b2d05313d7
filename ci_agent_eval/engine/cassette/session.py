"""The cassette of one episode: its recorded and new responses, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

from ci_agent_eval.engine.cassette.canonical import CanonicalRequest, Json, Redact
from ci_agent_eval.engine.cassette.document import Cassette, RecordedExchange, Take
from ci_agent_eval.engine.cassette.misses import (
    CassetteMissError,
    describe_changes,
    find_nearest_request,
)
from ci_agent_eval.engine.result import CassetteCounts

CassetteMode = Literal["off", "record", "replay", "auto"]


@dataclass
class CassetteSession:
    """The take of one iteration, for one episode and one event loop.

    A repeated request gets the first, second, ... recorded response. In `replay` a cassette
    with a single take serves every iteration; otherwise each iteration has its own take or
    none.
    """

    cassette: Cassette
    mode: CassetteMode
    redact: Redact
    iteration: int = 1
    source: str = "the cassette"
    """Name of the cassette in messages: its path."""
    hits: int = 0
    misses: int = 0
    live: int = 0
    refusals: list[str] = field(default_factory=list)
    """Error messages of the requests that were refused in replay."""
    _request_counts: Counter[str] = field(default_factory=Counter)
    _new: list[tuple[CanonicalRequest, Json | None]] = field(default_factory=list)

    @property
    def counts(self) -> CassetteCounts:
        """Numbers of hits, misses and live requests."""
        return CassetteCounts(self.hits, self.misses, self.live)

    @property
    def recorded_take(self) -> Take:
        """The recorded exchanges for this iteration."""
        takes = self.cassette.takes
        if self.mode not in ("replay", "auto"):
            return ()
        if self.mode == "replay" and len(takes) == 1:
            return next(iter(takes.values()))
        return takes.get(self.iteration, ())

    def find_response(self, request: CanonicalRequest) -> Json | None:
        """Return the recorded response to a request; None if the model must be asked.

        Raises CassetteMissError in replay.
        """
        if self.mode not in ("replay", "auto"):
            return None
        times = self._request_counts[request.key]
        found = [e.response for e in self.recorded_take if e.request.key == request.key]
        self._request_counts[request.key] += 1
        if times < len(found):
            self.hits += 1
            return found[times]
        self.misses += 1
        if self.mode == "replay":
            raise self.refuse(self._describe_miss(request))
        return None

    def refuse(self, message: str) -> CassetteMissError:
        """Record a refused request and return its error; the error may be caught and lost."""
        self.refusals.append(message)
        return CassetteMissError(message)

    def reserve_response(self, request: CanonicalRequest) -> int:
        """Reserve the next place for a live response; return its number."""
        self.live += 1
        self._new.append((request, None))
        return len(self._new) - 1

    def store_response(self, number: int, response: Json) -> None:
        """Store a live response at its reserved place."""
        self._new[number] = (self._new[number][0], response)

    @property
    def take(self) -> Take | None:
        """The take to write; None if there is none.

        A take with missing responses does not replace an older complete one.
        """
        new = tuple(
            RecordedExchange(request, response)
            for request, response in self._new
            if response is not None
        )
        is_worse = len(new) < len(self._new) and self.iteration in self.cassette.takes
        if not new or self.mode == "off" or (self.mode == "record" and is_worse):
            return None
        return (*self.recorded_take, *new)

    def _describe_miss(self, request: CanonicalRequest) -> str:
        where = f"{self.source} has no recording of this request"
        how = "record it with --cassette=record (or auto) and commit the file"
        if not self.cassette.takes:
            return f"{self.source} does not exist or is empty; {how}"
        if not self.recorded_take:
            known = ", ".join(str(number) for number in self.cassette.takes)
            return f"{where}: it holds iterations {known}, not {self.iteration}; {how}"
        most_similar = find_nearest_request(
            request, [exchange.request for exchange in self.recorded_take]
        )
        assert most_similar is not None  # noqa: S101 - `recorded_take` is not empty
        return f"{where}; if the change is meant, {how}. {describe_changes(most_similar, request)}"
