"""What an agent of any making has to do: answer one prompt, and show what it did on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.stops import AgentStop, StopReason
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall, Turn
from ci_agent_eval.engine.adapters.model_connections import ModelConnections
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.engine.limits import RunLimits, Stop
from ci_agent_eval.engine.run_record import Clock
from ci_agent_eval.engine.steering import Guard

COMPLETED = Stop("completed", "")


@dataclass(frozen=True, slots=True)
class Reply:
    """What an agent answered to one message."""

    text: str = ""
    tool_calls: Sequence[ToolCall | Mapping[str, Any]] = ()
    """The calls it made: `name`, and where known `id`, `arguments`, `result` or `error`."""
    usage: TokenUsage | Mapping[str, int] | None = None
    """Tokens `input`, `output` and, as a part of `input`, `cached`; None: not measured."""
    cost_usd: float | None = None
    stop_reason: StopReason = "completed"
    error: str | None = None
    """What happened, where it was not completed."""
    finish_reason: str | None = None
    """Why the provider says the model stopped: `stop`, `length`, `content_filter`, ..."""


@dataclass
class AgentTask:
    """One prompt to answer, and what was done about it; it is kept whatever happens next."""

    prompt: str
    history: Sequence[Any]
    """The conversation so far, in the agent's own form (`AgentResult.messages`)."""
    clock: Clock
    """Seconds from any fixed point."""
    limits: RunLimits = field(default_factory=RunLimits)
    cassette_session: CassetteSession | None = None
    """The episode's recording, for agents whose model can be put on it."""
    guard: Guard | None = None
    """Who reviews the episode's tool calls, for agents whose calls can be held back."""
    connections: ModelConnections | None = None
    """Of models that agents bring; unset: closed with the run."""
    allowed_stops: frozenset[AgentStop] = frozenset()
    turns: Sequence[Turn] = ()
    """The agent's turns so far, set anew as they come."""
    messages: Sequence[Any] | None = None
    """The conversation with this answer; unset: made of the texts."""
    stop: Stop = COMPLETED
    rate_limited: int = 0
    available_tools: tuple[str, ...] = ()
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def measure_elapsed_ms(self, moment: float | None = None) -> float:
        """Return the milliseconds since a moment, or since the beginning."""
        start = self.started if moment is None else moment
        return convert_to_ms(self.clock() - start)

    def set_reply(self, reply: Reply) -> None:
        """Take a reply as the one turn the agent took."""
        self.turns = (build_reply_turn(reply, self.measure_elapsed_ms()),)
        self.stop = build_reported_stop(reply.stop_reason, reply.error)


class AgentAdapter(Protocol):
    """An agent of any making. `answer` raises what goes wrong; what it did stays in `work`."""

    @property
    def label(self) -> str:
        """What reports call it."""

    @property
    def model(self) -> str | None:
        """The model it runs on, where that is known."""

    async def answer(self, work: AgentTask) -> None:
        """Answer `work.prompt`: set `work.turns` as they come, and `work.stop` at the end.

        Raises ModelError, or any other exception, where there is no answer; a cancelled
        task has to end at once and leave no process behind.
        """


def build_reply_turn(reply: Reply, latency_ms: float | None) -> Turn:
    """Return a reply as a turn. Raises pydantic's ValidationError for figures that are none."""
    return Turn(
        role="assistant",
        content=clean_text(reply.text),
        tool_calls=tuple(parse_tool_call(call) for call in reply.tool_calls),
        latency_ms=latency_ms,
        tokens=TokenUsage.model_validate(reply.usage) if reply.usage is not None else None,
        cost_usd=reply.cost_usd,
        source="live",
        finish_reason=None if reply.finish_reason is None else clean_text(reply.finish_reason),
    )


def build_reported_stop(reason: StopReason, error: str | None) -> Stop:
    """Return the end that an agent states itself."""
    return Stop(reason, clean_text(error or ""), needs_turn=reason == "max_turns")


def parse_tool_call(call: ToolCall | Mapping[str, Any]) -> ToolCall:
    """Return a call as the contract's; raises pydantic's ValidationError."""
    if isinstance(call, ToolCall):
        return call
    given = dict(call)
    for name in ("arguments", "result"):
        given[name] = to_jsonable(given.get(name))
    return ToolCall.model_validate(given)
