"""The trajectory of an agent: turns with their tool calls."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue

from ci_agent_eval.contract.base import Amount, Count, FrozenModel

_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "stop": ("end_turn", "stop_sequence", "complete", "completed", "eos", "eos_token"),
    # Anthropic's `model_context_window_exceeded` ends an answer; it rejects no request.
    "length": (
        "max_tokens",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
    ),
    "content_filter": (
        "content_filtered",
        "guardrail_intervened",
        "refusal",
        "safety",
        "recitation",
        "blocklist",
        "prohibited_content",
        "spii",
        "image_safety",
        "image_prohibited_content",
        "model_armor",
    ),
    "tool_call": ("tool_calls", "function_call", "tool_use"),
}
"""Spellings of OpenAI, Anthropic, Google, Bedrock, Cohere and Mistral, mapped as in PydanticAI."""

_KNOWN = {word: reason for reason, words in _SPELLINGS.items() for word in (reason, *words)}


def normalize_finish_reason(word: str) -> str:
    """Return `stop`, `length`, `content_filter` or `tool_call`; an unknown word unchanged."""
    return _KNOWN.get(word.casefold(), word)


def is_finish_reason(word: object) -> bool:
    """Say whether a value is a finish reason of a known provider."""
    return isinstance(word, str) and word.casefold() in _KNOWN


Role = Literal["user", "assistant", "system", "tool"]

CallSource = Literal["live", "replayed", "scripted"]
"""Origin of a reply: a model, its recording, or a script."""


class TokenUsage(FrozenModel):
    """Tokens of one turn; `cached` is the part of `input` read from a cache."""

    input: Count = 0
    output: Count = 0
    cached: Count = 0
    reasoning: Count | None = Field(
        default=None, description="the part of `output` spent on reasoning; unset: unknown"
    )

    @property
    def total(self) -> int:
        """Input plus output tokens."""
        return self.input + self.output


def sum_tokens(usages: Iterable[TokenUsage]) -> TokenUsage:
    """Return the sum; its reasoning tokens are unknown if one usage does not tell them."""
    listed = tuple(usages)
    reasoning = [usage.reasoning for usage in listed if usage.reasoning is not None]
    return TokenUsage(
        input=sum(usage.input for usage in listed),
        output=sum(usage.output for usage in listed),
        cached=sum(usage.cached for usage in listed),
        reasoning=sum(reasoning) if listed and len(reasoning) == len(listed) else None,
    )


TestRunExtent = Literal["full", "targeted"]
"""Extent of a run of pytest: the whole suite, or selected tests."""


class ToolCall(FrozenModel):
    """One tool call; it has a result, an error, or neither while it is open."""

    id: str | None = None
    name: str
    arguments: JsonValue = None
    result: JsonValue = None
    error: str | None = None
    duration_ms: Amount | None = None
    steered_by: str | None = None
    """Steering handler that blocked the call; the tool never ran and `result` is its message."""
    test_run: TestRunExtent | None = Field(
        default=None,
        description="extent of the pytest run that steering recognised in the call, also if it was "
        "blocked; unset: none, or the run was not steered",
    )
    result_unseen: bool = Field(
        default=False,
        description="the model traffic has no result of it: the run ended before, or the framework "
        "returned the result in another form",
    )

    @property
    def has_failed(self) -> bool:
        """Whether it raised an error or was blocked by steering."""
        return self.error is not None or self.steered_by is not None


MAX_TOTAL_ATTACHED_BYTES = 20 * 2**20
"""Bytes of all files in a conversation: as base64 they fit a request that the recorder keeps."""


def check_attached_bytes(total: int) -> None:
    """Raise ValueError if the files of a conversation have more bytes than allowed."""
    if total > MAX_TOTAL_ATTACHED_BYTES:
        raise ValueError(
            f"the files of the conversation have {total:,} bytes, of at most "
            f"{MAX_TOTAL_ATTACHED_BYTES:,}; send fewer or smaller ones"
        )


class Attachment(FrozenModel):
    """An image, file or sound in a message; its content is not kept."""

    media_type: str | None = None
    sha256: str | None = Field(default=None, description="hash of the bytes; unset: an address")
    size_bytes: Count | None = None


FinishReason = Annotated[str, AfterValidator(normalize_finish_reason)]


class Turn(FrozenModel):
    """One message of the conversation; agent turns have cost and latency."""

    role: Role
    content: str = ""
    agent: str | None = Field(
        default=None, description="id of its agent, if the trajectory lists several `agents`"
    )
    attachments: tuple[Attachment, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    latency_ms: Amount | None = None
    tokens: TokenUsage | None = None
    cost_usd: Amount | None = None
    source: CallSource | None = None
    finish_reason: FinishReason | None = Field(
        default=None,
        description="why the provider says the model stopped: stop, length, content_filter, "
        "tool_call, or the provider's own word; unset: it did not say",
    )
    requested_model: str | None = Field(default=None, description="model that the request named")
    response_model: str | None = Field(default=None, description="model that answered")
    first_byte_ms: Amount | None = Field(
        default=None, description="time to the first byte; of a streamed answer: to its first token"
    )
    settings: dict[str, JsonValue] = Field(
        default_factory=dict, description="sampling settings, with the names of the model's API"
    )
    typed_output: JsonValue = Field(
        default=None, description="the answer as a value, if the request gave a schema"
    )
    error: str | None = Field(
        default=None, description="why the answer is incomplete, such as a broken-off stream"
    )
    injected: bool = Field(
        default=False,
        description="whether the test put it into the conversation; its role is `system`, so that "
        "it never counts as the agent's",
    )

    @property
    def is_completed(self) -> bool:
        """Whether the agent answered; a turn without a reply is empty."""
        return self.role == "assistant" and bool(self.content.strip() or self.tool_calls)


AgentRelation = Literal["nested", "handoff"]
"""`nested`: a tool call of its parent ran it. `handoff`: its parent gave it the conversation."""


class TrajectoryAgent(FrozenModel):
    """One of several agents of an episode, as the model traffic tells them apart."""

    id: str = Field(description="place in the tree of agents: `1`, and `1.2` below it")
    name: str | None = Field(
        default=None, description="from the tool call that ran it or handed over; unset: unknown"
    )
    parent: str | None = Field(
        default=None, description="id of the agent that started it; unset: none is known"
    )
    relation: AgentRelation | None = None
    call_id: str | None = Field(default=None, description="id of the parent's tool call")


class Trajectory(FrozenModel):
    """The turns of an episode in order."""

    turns: tuple[Turn, ...] = ()
    agents: tuple[TrajectoryAgent, ...] = Field(
        default=(), description="its agents, if there are several; `agent` of a turn names one"
    )

    @property
    def agent_turns(self) -> tuple[Turn, ...]:
        """The agent's turns (role `assistant`)."""
        return tuple(turn for turn in self.turns if turn.role == "assistant")

    def tool_calls(self) -> Iterator[ToolCall]:
        """Yield every tool call in order."""
        for turn in self.turns:
            yield from turn.tool_calls

    @property
    def latencies_ms(self) -> tuple[float, ...]:
        """Measured latencies of the agent's turns."""
        return tuple(t.latency_ms for t in self.agent_turns if t.latency_ms is not None)

    @property
    def total_tokens(self) -> int | None:
        """Tokens of all agent turns; None if any turn was not measured."""
        usages = [turn.tokens for turn in self.agent_turns]
        if not usages or None in usages:
            return None
        return sum(usage.total for usage in usages if usage is not None)

    @property
    def cost_usd(self) -> float | None:
        """Cost of all agent turns; None if any turn is unpriced."""
        costs = [turn.cost_usd for turn in self.agent_turns]
        if not costs or None in costs:
            return None
        # Exact, so that the result does not depend on the order or the Python version.
        return math.fsum(cost for cost in costs if cost is not None)


class TrajectorySummary(FrozenModel, extra="allow"):
    """Counts of a trajectory, and any keys that a producer adds."""

    steps_count: Count = Field(default=0, description="turns the agent took")
    tool_calls_count: Count = Field(default=0, description="tool calls made")


def summarize_trajectory(trajectory: Trajectory) -> TrajectorySummary:
    """Count the agent's turns and its tool calls."""
    return TrajectorySummary(
        steps_count=len(trajectory.agent_turns),
        tool_calls_count=sum(1 for _ in trajectory.tool_calls()),
    )


def find_requested_model(turns: Sequence[Turn]) -> str | None:
    """Return the model of the first answer."""
    return next((turn.requested_model for turn in turns if turn.requested_model), None)
