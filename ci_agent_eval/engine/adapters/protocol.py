"""The protocol of agent adapters: answer one prompt and record the actions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ci_agent_eval.contract.jsonable import clean_text, to_jsonable
from ci_agent_eval.contract.measurement import convert_to_ms
from ci_agent_eval.contract.stops import COMPLETED, AgentStop, Stop, StopReason
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall, TrajectoryAgent, Turn
from ci_agent_eval.engine.cassette.session import CassetteSession
from ci_agent_eval.engine.limits import Clock, Guard, PausableDeadline, RunLimits
from ci_agent_eval.engine.result import ImageContent
from ci_agent_eval.engine.session import ModelConnections
from ci_agent_eval.engine.traffic import RunTraffic
from ci_agent_eval.recording import Reply
from ci_agent_eval.recording.faults import EpisodeFaults


@dataclass
class AgentTask:
    """A prompt for an agent and its recorded actions, which survive any error."""

    prompt: str
    history: Sequence[Any]
    """The conversation so far, in the agent's format (`AgentResult.messages`)."""
    clock: Clock
    """Seconds from any fixed point."""
    limits: RunLimits = field(default_factory=RunLimits)
    cassette_session: CassetteSession | None = None
    """The episode's cassette, for agents whose model can be recorded."""
    guard: Guard | None = None
    """Reviews the episode's tool calls, for agents whose calls can be held back."""
    connections: ModelConnections | None = None
    """Connections of the agents' own models; unset: closed with the run."""
    allowed_stops: frozenset[AgentStop] = frozenset()
    parts: Sequence[Any] | None = None
    """The prompt with its files, for agents of PydanticAI; None: it is only text."""
    faults: EpisodeFaults = field(default_factory=EpisodeFaults)
    """The episode's faults on purpose."""
    turns: Sequence[Turn] = ()
    """The agent's turns so far, replaced after each event; the model traffic completes them."""
    agents: Sequence[TrajectoryAgent] = ()
    """The agents of the turns, if there are several."""
    traffic: RunTraffic = field(init=False)
    """The agent's model calls; set by the run."""
    deadline: PausableDeadline = field(init=False)
    """The run's limit of time; set by the run."""
    describe_progress: Callable[[], str] = lambda: ""
    """Returns what the agent was doing when its time was up."""
    messages: Sequence[Any] | None = None
    """The conversation with this answer; unset: built from the texts."""
    stop: Stop = COMPLETED
    rate_limited: int = 0
    available_tools: tuple[str, ...] = ()
    images: tuple[tuple[str, ImageContent], ...] = ()
    """The images that tools returned, each with its tool."""
    declared: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the result that only a declared agent has."""
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    def measure_elapsed_ms(self, moment: float | None = None) -> float:
        """Return the milliseconds since a moment, or since the start of the task."""
        start = self.started if moment is None else moment
        return convert_to_ms(self.clock() - start)

    def set_reply(self, reply: Reply) -> None:
        """Record a reply as the agent's single turn."""
        self.turns = (build_reply_turn(reply, self.measure_elapsed_ms()),)
        self.stop = build_reported_stop(reply.stop_reason, reply.error)


class AgentAdapter(Protocol):
    """An adapter for your own agent. `answer` raises errors; its actions stay in `work`."""

    @property
    def label(self) -> str:
        """The agent's name in reports."""

    @property
    def model(self) -> str | None:
        """The agent's model, if known."""

    async def answer(self, work: AgentTask) -> None:
        """Answer `work.prompt`: set `work.turns` after each event and `work.stop` at the end.

        Raises ModelError or any other exception if there is no answer; a cancelled task must
        end at once and leave no process behind.
        """


def build_reply_turn(reply: Reply, latency_ms: float | None) -> Turn:
    """Build the turn of a reply. Raises pydantic's ValidationError for invalid numbers."""
    return Turn(
        role="assistant",
        content=clean_text(reply.text),
        tool_calls=tuple(parse_tool_call(call) for call in reply.tool_calls),
        latency_ms=latency_ms,
        tokens=TokenUsage.model_validate(reply.usage) if reply.usage is not None else None,
        cost_usd=reply.cost_usd,
        source=reply.source,
        finish_reason=None if reply.finish_reason is None else clean_text(reply.finish_reason),
        typed_output=to_jsonable(reply.output),
    )


def build_reported_stop(reason: StopReason, error: str | None) -> Stop:
    """Build the stop that an agent reports."""
    return Stop(reason, clean_text(error or ""), needs_turn=reason == "max_turns")


def parse_tool_call(call: ToolCall | Mapping[str, Any]) -> ToolCall:
    """Convert a call to a ToolCall. Raises pydantic's ValidationError."""
    if isinstance(call, ToolCall):
        return call
    given = dict(call)
    for name in ("arguments", "result"):
        given[name] = to_jsonable(given.get(name))
    return ToolCall.model_validate(given)
