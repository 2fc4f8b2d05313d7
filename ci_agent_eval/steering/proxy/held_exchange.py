"""One request of a client, and the answers of the model behind the client's answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ci_agent_eval.model_traffic.formats.json_values import Json, render_compact_json
from ci_agent_eval.steering.proxy.dialect import Dialect, HeldAnswer

MAX_HELD_ANSWERS = 4
"""Maximum number of answers with held calls behind one answer of the client's."""

MAX_SECONDS = 600.0
"""Time after which the model is not asked again for one request."""


@dataclass(frozen=True, slots=True)
class Continuation:
    """An answer with held calls, and how the conversation continues."""

    shown: Json
    """What the client has of this answer and those before."""
    held: HeldAnswer
    request: Json
    body: bytes
    """The request as JSON."""


@dataclass(slots=True)
class HeldExchange:
    """The state of one request; `request` is the one that the provider got."""

    dialect: Dialect
    request: Json
    has_session: bool
    remember: Callable[[HeldExchange, Json], None]
    """Called with the client's complete answer before it is sent."""
    clock: Callable[[], float]
    answers: list[HeldAnswer] = field(default_factory=list)
    response_ids: list[str] = field(default_factory=list)
    """The ids of the provider's answers so far."""
    _shown: Json | None = None
    _start: float = 0.0

    def __post_init__(self) -> None:
        self._start = self.clock()

    @property
    def may_hold(self) -> bool:
        """Whether calls of the next answer may be held."""
        return len(self.answers) < MAX_HELD_ANSWERS

    @property
    def has_to_complete(self) -> bool:
        """Whether the complete answer is needed before the client has its end."""
        return bool(self.answers) or self.dialect.has_stored_answers

    def find_obstacle(self, body: Json) -> str | None:
        """Return why the calls of an answer have to go through; None if they can be held."""
        if not self.has_session:
            return "nothing in the request identifies its session"
        if self.dialect.is_cut_off(body):
            return "the answer is incomplete"
        if self.clock() - self._start > MAX_SECONDS:
            return f"the request has taken more than {MAX_SECONDS:.0f} seconds"
        return self.dialect.find_obstacle(self.request)

    def hold(self, body: Json, messages: Mapping[str, str]) -> Continuation:
        """Return an answer without its held calls, and the request for the next answer."""
        shown, held = self.dialect.hold_calls(body, messages)
        request = self.dialect.build_request(self.request, body, held)
        if len(self.answers) + 1 == MAX_HELD_ANSWERS:
            request = self.dialect.forbid_calls(request)
        return Continuation(self._merge(shown), held, request, render_compact_json(request))

    def accept(self, continuation: Continuation) -> None:
        """Continue with the next answer, after the provider took the request."""
        self._add_id(continuation.shown)
        self._shown = continuation.shown
        self.answers.append(continuation.held)
        self.request = continuation.request

    def complete(self, body: Json) -> Json:
        """Return the client's answer, of all answers, and remember the held calls."""
        return self._finish(self._merge(body))

    def complete_shared(self, continuation: Continuation) -> Json:
        """Return the client's answer if the client runs other calls of the last answer."""
        self.answers.append(continuation.held)
        return self._finish(continuation.shown)

    def _finish(self, merged: Json) -> Json:
        self._add_id(merged)
        self.remember(self, merged)
        return merged

    def _add_id(self, body: Json) -> None:
        response_id = body.get("id")
        if isinstance(response_id, str):
            self.response_ids.append(response_id)

    def _merge(self, body: Json) -> Json:
        return body if self._shown is None else self.dialect.merge_answers(self._shown, body)
