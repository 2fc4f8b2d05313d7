"""The cassette of one episode: its recorded and new responses, counted."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from ci_agent_eval.engine.cassette.answers import Json, Redact
from ci_agent_eval.engine.cassette.document import (
    Cassette,
    RecordedExchange,
    RecordedRequest,
    Take,
    ToolRequest,
    TrafficRequest,
)
from ci_agent_eval.engine.cassette.misses import (
    CassetteMissError,
    ReplaceRule,
    apply_rules,
    describe_changes,
    find_nearest_request,
)
from ci_agent_eval.engine.result import CassetteCounts
from ci_agent_eval.model_traffic.recorder import ModelCallPlayer

CassetteMode = Literal["off", "record", "replay", "auto"]


@dataclass
class CassetteSession:
    """The take of one iteration, for one episode.

    A repeated request gets the first, second, ... recorded response. In `replay` a cassette
    with a single take serves every iteration; otherwise each iteration has its own take or
    none. Exchanges are numbered from 1: the recorded ones, then the new ones. Thread-safe.
    """

    cassette: Cassette
    mode: CassetteMode
    redact: Redact
    iteration: int = 1
    source: str = "the cassette"
    """Name of the cassette in messages: its path."""
    rules: Sequence[ReplaceRule] = ()
    """Replacements in requests, before their keys are made."""
    has_tools: bool = False
    """Whether tool calls are recorded and replayed, too."""
    player: ModelCallPlayer | None = None
    """The player of the episode's model traffic, for all its recorders; None: mode `off`."""
    save: Callable[[], None] = lambda: None
    """Called after each new response in `auto`, so that a killed run has paid for it once."""
    hits: int = 0
    misses: int = 0
    live: int = 0
    refusals: list[str] = field(default_factory=list)
    """Error messages of the requests that were refused in replay."""
    _new: list[tuple[RecordedRequest, Json | None]] = field(default_factory=list)
    _freed: set[int] = field(default_factory=set)
    """Numbers of new exchanges whose request is expected again."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def counts(self) -> CassetteCounts:
        """Numbers of hits, misses and live requests."""
        return CassetteCounts(self.hits, self.misses, self.live)

    @cached_property
    def recorded_take(self) -> Take:
        """The recorded exchanges for this iteration, with the rules applied to their requests."""
        takes = self.cassette.takes
        if self.mode not in ("replay", "auto"):
            return ()
        if self.mode == "replay" and len(takes) == 1:
            found = next(iter(takes.values()))
        else:
            found = takes.get(self.iteration, ())
        if not self.rules:
            return found
        return tuple(
            RecordedExchange(exchange.request.convert(self._apply_rules), exchange.response)
            for exchange in found
        )

    def normalize(self, value: Any) -> Any:
        """Return a value of a request without secrets, with the rules applied."""
        return self._apply_rules(self.redact(value))

    def find_exchange(self, request: RecordedRequest) -> int | None:
        """Return the number of the exchange that answers a request; None if nothing does.

        Raises CassetteMissError in replay.
        """
        is_model_request = not isinstance(request, ToolRequest)
        if self.mode not in ("replay", "auto"):
            return None
        with self._lock:
            if expected := self._expected_numbers.get(request.key):
                self.hits += is_model_request
                return expected.popleft()
            self.misses += is_model_request or self.mode == "replay"
            if self.mode == "replay":
                recorded = [exchange.request for exchange in self.recorded_take]
                nearest = find_nearest_request(request, recorded)
                error = CassetteMissError(self._describe_miss(request, nearest))
                error.nearest = nearest
                self.refusals.append(str(error))  # the error may be caught and lost
                raise error
            return None

    @cached_property
    def _expected_numbers(self) -> Mapping[str, deque[int]]:
        """The numbers of the recorded exchanges that are expected, by key."""
        numbers: defaultdict[str, deque[int]] = defaultdict(deque)
        for number, exchange in enumerate(self.recorded_take, 1):
            numbers[exchange.request.key].append(number)
        return numbers

    def reserve_response(self, request: RecordedRequest) -> int:
        """Reserve the next place for a live response; return its number.

        A request whose response was freed gets its place again.
        """
        with self._lock:
            self.live += not isinstance(request, ToolRequest)
            for number in sorted(self._freed):
                if self._get_new(number)[0].key == request.key:
                    self._freed.remove(number)
                    return number
            self._new.append((request, None))
            return len(self.recorded_take) + len(self._new)

    def free_response(self, number: int) -> None:
        """Free the place of an unrecorded response, for the next attempt of its request."""
        with self._lock:
            self._freed.add(number)

    def store_response(self, number: int, response: Json) -> None:
        """Store a live response at its reserved place."""
        with self._lock:
            self._new[number - len(self.recorded_take) - 1] = (self._get_new(number)[0], response)
            if self.mode == "auto":
                self.save()

    def _get_new(self, number: int) -> tuple[RecordedRequest, Json | None]:
        return self._new[number - len(self.recorded_take) - 1]

    @property
    def take(self) -> Take | None:
        """The take to write; None if there is none.

        A take with missing responses does not replace an older complete one.
        """
        start = len(self.recorded_take) + 1
        complete = [n for n, (_, response) in enumerate(self._new, start) if response is not None]
        is_worse = len(complete) < len(self._new) and self.iteration in self.cassette.takes
        if not complete or self.mode == "off" or (self.mode == "record" and is_worse):
            return None
        numbers = {old: new for new, old in enumerate(complete, start)}
        new = (_build_exchange(*self._get_new(number), numbers) for number in complete)
        return (*self.recorded_take, *new)

    def _apply_rules(self, value: Any) -> Any:
        return apply_rules(self.rules, value) if self.rules else value

    def _describe_miss(self, request: RecordedRequest, nearest: RecordedRequest | None) -> str:
        """Describe a miss; the first line is the same in all scenarios with this difference."""
        where = "the cassette has no recording of this request"
        how = "record it with --cassette=record (or auto) and commit the file"
        if not self.cassette.takes:
            text = f"the cassette does not exist or is empty; {how}"
        elif not self.recorded_take:
            known = ", ".join(str(number) for number in self.cassette.takes)
            text = f"{where}: it holds iterations {known}, not {self.iteration}; {how}"
        elif nearest is None:
            text = f"{where}, nor of any like it; {how}"
        else:
            changes = describe_changes(nearest, request)
            text = f"{where}; if the change is meant, {how}. {changes}"
        first, newline, diff = text.partition("\n")
        return f"{first}\nin {self.source}{newline}{diff}"


def _build_exchange(
    request: RecordedRequest, response: Json | None, numbers: Mapping[int, int]
) -> RecordedExchange:
    """Build a new exchange with its current references to earlier exchanges."""
    assert response is not None  # noqa: S101 - only complete exchanges
    if isinstance(request, TrafficRequest) and request.previous is not None:
        request = replace(request, previous=numbers.get(request.previous, request.previous))
    return RecordedExchange(request, response)
