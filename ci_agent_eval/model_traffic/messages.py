"""Requests to models and their answers, read from any format. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from ci_agent_eval.contract.trajectory import Attachment, Role, TokenUsage, ToolCall

FormatName = Literal[
    "openai-chat", "openai-responses", "anthropic-messages", "gemini", "bedrock-converse"
]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool call, as a later request returns it to the model."""

    call_id: str | None
    """Id of the call; None if the format has none (Gemini, sometimes)."""
    name: str | None
    """Name of the tool, where the format repeats it."""
    value: JsonValue
    is_error: bool = False
    """Whether the format marks it as an error (Anthropic, Bedrock)."""


@dataclass(frozen=True, slots=True)
class RequestMessage:
    """One message of a request."""

    role: Role
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_results: tuple[ToolResult, ...] = ()
    attachments: tuple[Attachment, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool that a request offers to the model."""

    name: str
    schema: JsonValue = None
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestHead:
    """The part of a request to a model that does not grow with the conversation."""

    model: str | None
    settings: Mapping[str, JsonValue] = field(default_factory=dict)
    """Sampling settings, with the names of the format: `temperature`, `max_tokens`, ..."""
    output_schema: JsonValue = None
    """JSON schema of the typed output, if the request asks for one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest(RequestHead):
    """A request to a model."""

    format: FormatName
    messages: tuple[RequestMessage, ...]
    """The conversation in order; instructions are messages of the role `system`."""
    tools: tuple[ToolDefinition, ...] = ()
    is_streamed: bool = False
    previous_response_id: str | None = None
    """The answer that the provider continues (`previous_response_id`, `conversation`)."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """The answer of a model; of a broken-off stream the part that arrived."""

    id: str | None = None
    model: str | None = None
    """The model that answered, where the answer names it."""
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls for the agent to make; calls that the provider made have their result or error."""
    tokens: TokenUsage | None = None
    """None: the answer has no usage, which is not zero."""
    usage: Mapping[str, object] | None = None
    """The usage as the provider wrote it, for prices of sounds, cache writes and searches."""
    finish_reason: str | None = None
    error: str | None = None
    """The message of an error answer, or of an error event in a stream."""
