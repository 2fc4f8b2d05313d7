"""The result of an agent's run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci_agent_eval.checks.arguments import arguments_match
from ci_agent_eval.checks.base import format_list
from ci_agent_eval.checks.tools import describe_misspelling
from ci_agent_eval.contract.episode import Instructions, Outcome, TrafficSummary
from ci_agent_eval.contract.jsonable import to_jsonable
from ci_agent_eval.contract.stops import AgentStop, StopReason, is_agent_failure
from ci_agent_eval.contract.trajectory import TokenUsage, ToolCall, Trajectory, Turn, sum_tokens
from ci_agent_eval.errors import InputError


@dataclass(frozen=True, slots=True)
class CassetteCounts:
    """Numbers of cassette hits, misses and live requests."""

    hits: int = 0
    misses: int = 0
    live: int = 0


@dataclass(frozen=True, slots=True)
class ImageContent:
    """An image that a tool returned."""

    data: bytes = field(repr=False)
    media_type: str
    """Its type: `image/png`."""


@dataclass(frozen=True, slots=True)
class SkillInfo:
    """The skill of an agent."""

    name: str
    description: str
    instruction_content: str
    """The instructions before the system prompt, with the list of the files."""
    reference_names: tuple[str, ...] = ()
    """Paths of its files from its folder."""


@dataclass(frozen=True, slots=True)
class AgentResult:
    """A run from the prompt to its end, for every kind of end."""

    trajectory: Trajectory
    """The turns of this run, the prompt first; earlier messages are not repeated."""
    stop_reason: StopReason
    error: str | None = None
    """Description of an end other than `completed`."""
    duration_ms: float = 0.0
    """Duration of the run, including waits for rate limits."""
    messages: Sequence[Any] = field(default=(), repr=False)
    """The whole conversation, for `messages=` of the next run."""
    rate_limited: int = 0
    """Number of 429 responses of the model's API."""
    available_tools: tuple[str, ...] = ()
    """The tools in the last request to the model."""
    cassette: CassetteCounts = CassetteCounts()
    agent: str | None = None
    model: str | None = None
    needs_turn: bool = False
    """Whether the run needed one more turn than allowed."""
    allowed_stops: frozenset[AgentStop] = frozenset()
    """Ends without an answer that the test allows this run."""
    traffic: TrafficSummary | None = None
    """Numbers of the agent's model calls; None: the engine or the agent itself measured them."""

    images: tuple[tuple[str, ImageContent], ...] = field(default=(), repr=False)
    """The images that tools of a declared or PydanticAI agent returned, each with its tool."""
    effective_system_prompt: str = ""
    """The instructions of the agent, as the model gets them; of a declared agent its skill's
    instructions, then its own. Empty: it has none, or its traffic was not seen."""
    instructions: tuple[Instructions, ...] = field(default=(), repr=False)
    """The instructions of all agents of the run, and the descriptions of their tools."""
    skill_info: SkillInfo | None = None
    """The skill of a declared agent."""
    tools_by_server: Mapping[str, tuple[str, ...]] | None = None
    """The tools of each server of a declared agent; None: the servers are not known."""

    def __repr__(self) -> str:
        """Return a short text for failed assertions, which are shown with the conversation."""
        calls = format_list(call.name for call in self.all_tool_calls) or "none"
        counts = f"turns: {len(self.trajectory.agent_turns)}, tool calls: {calls}"
        return f"<result of agent {self.agent!r}: {self.stop_reason}, {counts}>"

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The prompt and the model's answers, in order."""
        return self.trajectory.turns

    @property
    def success(self) -> bool:
        """Whether the agent answered."""
        return self.stop_reason == "completed"

    @property
    def outcome(self) -> Outcome:
        """The outcome of the run, before any check.

        An end that the test allows passes. A timeout before the first response is an
        infrastructure error: the API did not answer.
        """
        if self.success or self.stop_reason in self.allowed_stops:
            return "passed"
        answered = bool(self.trajectory.agent_turns)
        return "failed" if is_agent_failure(self.stop_reason, answered=answered) else "error"

    @property
    def final_response(self) -> str:
        """The last text of the model; empty if there is none."""
        return next(reversed(self.all_responses), "")

    @property
    def all_responses(self) -> tuple[str, ...]:
        """Every text of the model in order; the last one is `final_response`."""
        return tuple(turn.content for turn in self.trajectory.agent_turns if turn.content)

    @property
    def token_usage(self) -> TokenUsage | None:
        """Tokens of all turns; None if a turn was not measured."""
        usages = [turn.tokens for turn in self.trajectory.agent_turns]
        measured = [usage for usage in usages if usage is not None]
        if not measured or len(measured) != len(usages):
            return None
        return sum_tokens(measured)

    @property
    def cost_usd(self) -> float | None:
        """Cost of all turns; None if a turn has no price."""
        return self.trajectory.cost_usd

    @property
    def all_tool_calls(self) -> tuple[ToolCall, ...]:
        """Every tool call in order."""
        return tuple(self.trajectory.tool_calls())

    @property
    def tool_names_called(self) -> frozenset[str]:
        """The names of the tools that were called."""
        return frozenset(call.name for call in self.all_tool_calls)

    def tool_calls_for(self, name: str) -> tuple[ToolCall, ...]:
        """Return the calls of one tool in order. Raises AssertionError for a misspelled name."""
        calls = tuple(call for call in self.all_tool_calls if call.name == name)
        if not calls and self.available_tools:
            __tracebackhide__ = True
            tools = {*self.available_tools, *self.tool_names_called}
            if (problem := describe_misspelling(name, tools)) is not None:
                raise AssertionError(problem)
        return calls

    def tool_was_called(self, name: str) -> bool:
        """Return whether a tool was called."""
        return bool(self.tool_calls_for(name))

    def tool_was_called_with(self, name: str, /, **arguments: Any) -> bool:
        """Return whether one call of a tool had all these arguments; it may have had others."""
        expected = to_jsonable(arguments)
        calls = self.tool_calls_for(name)
        return any(arguments_match(call.arguments, expected, "superset") for call in calls)

    def tool_was_called_from_server(self, server: str, name: str) -> bool:
        """Return whether a tool of a server was called, by the name of its declaration.

        Raises InputError for a server that the agent does not have.
        """
        tools = self.tools_by_server
        if tools is None:
            raise InputError(f"the tool servers of agent {self.agent!r} are not known")
        if server not in tools:
            raise InputError(
                f"agent {self.agent!r} has no tool server {server!r}; it has: "
                f"{', '.join(tools) or 'none'}"
            )
        return name in tools[server] and self.tool_was_called(name)

    def tool_images_for(self, name: str) -> tuple[ImageContent, ...]:
        """Return the images that a tool returned, in order."""
        return tuple(image for tool, image in self.images if tool == name)

    def tool_call_count(self, name: str) -> int:
        """Return the number of calls of a tool."""
        return len(self.tool_calls_for(name))

    def tool_call_arg(self, name: str, arg: str) -> Any:
        """Return an argument of the first call of a tool; None if it is missing."""
        calls = self.tool_calls_for(name)
        arguments = calls[0].arguments if calls else None
        return arguments.get(arg) if isinstance(arguments, dict) else None


Observer = Callable[[AgentResult], None]
"""Called once with the result, even if the run was cancelled."""
