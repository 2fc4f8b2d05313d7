"""One episode's way through a cassette: what it hears, what it adds, and how often which."""

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

    Asked the same more than once, it answers with what was recorded first, second and so
    on. In `replay` a cassette with a single take serves every iteration; in any other case
    an iteration has a take of its own or none.
    """

    cassette: Cassette
    mode: CassetteMode
    redact: Redact
    iteration: int = 1
    source: str = "the cassette"
    """How messages call the cassette: its path."""
    hits: int = 0
    misses: int = 0
    live: int = 0
    refusals: list[str] = field(default_factory=list)
    """Requests that were refused in replay, in the words of their errors."""
    _asked: Counter[str] = field(default_factory=Counter)
    _new: list[tuple[CanonicalRequest, Json | None]] = field(default_factory=list)

    @property
    def counts(self) -> CassetteCounts:
        """How often the recording answered, did not, and how often a model was asked."""
        return CassetteCounts(self.hits, self.misses, self.live)

    @property
    def recorded(self) -> Take:
        """The exchanges this iteration may hear."""
        takes = self.cassette.takes
        if self.mode not in ("replay", "auto"):
            return ()
        if self.mode == "replay" and len(takes) == 1:
            return next(iter(takes.values()))
        return takes.get(self.iteration, ())

    def find_response(self, request: CanonicalRequest) -> Json | None:
        """Return the recorded response to a request; None where a model is to be asked.

        Raises CassetteMissError in replay.
        """
        if self.mode not in ("replay", "auto"):
            return None
        times = self._asked[request.key]
        found = [e.response for e in self.recorded if e.request.key == request.key]
        self._asked[request.key] += 1
        if times < len(found):
            self.hits += 1
            return found[times]
        self.misses += 1
        if self.mode == "replay":
            raise self.refuse(self._miss(request))
        return None

    def refuse(self, message: str) -> CassetteMissError:
        """Keep that a request was refused, whatever becomes of the error; return the error."""
        self.refusals.append(message)
        return CassetteMissError(message)

    def begin(self, request: CanonicalRequest) -> int:
        """Keep a place for a live response, in the order of asking; return its number."""
        self.live += 1
        self._new.append((request, None))
        return len(self._new) - 1

    def keep(self, place: int, response: Json) -> None:
        """Put a live response in its place."""
        self._new[place] = (self._new[place][0], response)

    @property
    def take(self) -> Take | None:
        """The iteration's take as it is to be written; None where nothing is.

        Answers that never came leave an older, whole take in its place.
        """
        new = tuple(
            RecordedExchange(request, told) for request, told in self._new if told is not None
        )
        is_worse = len(new) < len(self._new) and self.iteration in self.cassette.takes
        if not new or self.mode == "off" or (self.mode == "record" and is_worse):
            return None
        return (*self.recorded, *new)

    def _miss(self, request: CanonicalRequest) -> str:
        where = f"{self.source} has no recording of this request"
        how = "record it with --cassette=record (or auto) and commit the file"
        if not self.cassette.takes:
            return f"{self.source} does not exist or is empty; {how}"
        if not self.recorded:
            known = ", ".join(str(number) for number in self.cassette.takes)
            return f"{where}: it holds iterations {known}, not {self.iteration}; {how}"
        near = find_nearest_request(request, [exchange.request for exchange in self.recorded])
        assert near is not None  # noqa: S101 - there is one at least
        return f"{where}; if the change is meant, {how}. {describe_changes(near, request)}"
