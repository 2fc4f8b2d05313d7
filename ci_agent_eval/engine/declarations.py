"""Declarations of a test: provider, tool servers, skill, agent. Frozen values without I/O.

An invalid value raises InputError, which names the field.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, get_args

from ci_agent_eval.contract import fields
from ci_agent_eval.steering.policy.settings import SteeringSettings

Transport = Literal["stdio", "sse", "streamable-http"]
Isolation = Literal["shared", "reset", "per_episode"]
Reset = str | Callable[[], Awaitable[None] | None]
"""A tool's name or a function, called between two episodes."""

OUTPUT_CAP_BYTES = 65_536
"""Output limit of a command; far more than a model reads well."""

_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,40}")
_MODEL = re.compile(r"(?P<provider>[^:/\s]+)[:/](?P<name>\S.*)")
_PROVIDER_ALIASES = {"gemini": "google", "vertex_ai": "google-cloud", "azure_ai": "azure"}
"""PydanticAI's names of providers that have other names elsewhere."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A model and how to reach it."""

    model: str
    """`azure/gpt-5-mini` or `openai:gpt-5-mini`: the provider, then the model's own name."""
    temperature: float | None = None
    max_tokens: int | None = None
    """Maximum tokens of one response."""
    rpm: int | None = None
    """Requests per minute, over all episodes of the process."""
    tpm: int | None = None
    """Tokens per minute, input plus output, over all episodes of the process."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server; unset: the provider's address."""
    api_key_env: str | None = None
    """Environment variable of the key; unset: the provider's usual variable."""

    def __post_init__(self) -> None:
        fields.require_text("Provider", "model", self.model)
        if _MODEL.fullmatch(self.model) is None:
            raise fields.field_error(
                "Provider",
                "model",
                f"{self.model!r} names no provider; write openai:gpt-5-mini or azure/gpt-5-mini",
            )
        fields.require_optional_number("Provider", "temperature", self.temperature, least=0)
        for name in ("max_tokens", "rpm", "tpm"):
            fields.require_optional_number(
                "Provider", name, getattr(self, name), least=1, whole=True
            )
        for name in ("base_url", "api_key_env"):
            fields.require_text("Provider", name, getattr(self, name), optional=True)

    @property
    def system(self) -> str:
        """The provider's name in PydanticAI: `openai`, `azure`, `google`."""
        prefix = self._model_match["provider"].lower()
        return _PROVIDER_ALIASES.get(prefix, prefix)

    @property
    def model_name(self) -> str:
        """The model's name without its provider."""
        return self._model_match["name"]

    @property
    def model_id(self) -> str:
        """Provider and model in canonical form: `azure:gpt-5-mini`."""
        return f"{self.system}:{self.model_name}"

    @property
    def _model_match(self) -> re.Match[str]:
        found = _MODEL.fullmatch(self.model)
        assert found is not None  # noqa: S101 - `__post_init__` refused anything else
        return found


@dataclass(frozen=True, slots=True)
class Wait:
    """Conditions of a server's readiness, in addition to a first answer."""

    tools: tuple[str, ...] = ()
    """Tools that the server must offer."""
    log: str | None = None
    """A regular expression that a line of the server's stderr must match."""
    timeout_s: float | None = None
    """Seconds; unset: the server's `startup_timeout_s`."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tools", fields.parse_texts("Wait", "tools", self.tools))
        fields.require_text("Wait", "log", self.log, optional=True)
        if self.timeout_s is not None:
            fields.require_seconds("Wait", "timeout_s", self.timeout_s)
        try:
            re.compile(self.log or "")
        except re.error as error:
            raise fields.field_error("Wait", "log", f"is no regular expression: {error}") from error

    @classmethod
    def ready(cls, timeout_s: float | None = None) -> Wait:
        """Wait until the server answers the protocol's first message."""
        return cls(timeout_s=timeout_s)

    @classmethod
    def for_tools(cls, tools: Sequence[str], timeout_s: float | None = None) -> Wait:
        """Wait until the server offers these tools."""
        return cls(tools=tuple(fields.parse_texts("Wait", "tools", tools)), timeout_s=timeout_s)

    @classmethod
    def for_log(cls, pattern: str, timeout_s: float | None = None) -> Wait:
        """Wait until a line of the server's stderr matches."""
        return cls(log=pattern, timeout_s=timeout_s)


@dataclass(frozen=True, slots=True)
class MCPServer:
    """A tool server with the Model Context Protocol."""

    command: Sequence[str] | None = None
    """The program and its first arguments (stdio); never given to a shell."""
    args: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Environment variables of the server, besides the few that a program needs to start."""
    wait: Wait | None = None
    cwd: str | Path | None = None
    transport: Transport = "stdio"
    url: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    isolation: Isolation = "shared"
    """Whether episodes share the server, share it with a reset between, or have one each."""
    reset: Reset | None = None
    startup_timeout_s: float = 30.0
    call_timeout_s: float = 60.0
    name: str | None = None

    def __post_init__(self) -> None:
        _check_server("MCPServer", self)
        if isinstance(self.command, str):
            object.__setattr__(self, "command", (self.command,))
        for name in ("command", "args"):
            if getattr(self, name) is not None:
                value = fields.parse_texts("MCPServer", name, getattr(self, name))
                object.__setattr__(self, name, value)
        object.__setattr__(
            self, "headers", fields.parse_text_mapping("MCPServer", "headers", self.headers)
        )
        fields.require_one_of("MCPServer", "transport", self.transport, get_args(Transport))
        fields.require_one_of("MCPServer", "isolation", self.isolation, get_args(Isolation))
        for name in ("startup_timeout_s", "call_timeout_s"):
            fields.require_seconds("MCPServer", name, getattr(self, name))
        self._check_address()
        self._check_reset()

    def _check_address(self) -> None:
        local = self.transport == "stdio"
        if local and not self.command:
            raise fields.field_error("MCPServer", "command", "is needed by the transport stdio")
        if not local and self.url is None:
            raise fields.field_error(
                "MCPServer", "url", f"is needed by the transport {self.transport}"
            )
        if local and self.url is not None:
            raise fields.field_error(
                "MCPServer", "url", "needs the transport sse or streamable-http"
            )
        fields.require_text("MCPServer", "url", self.url, optional=True)

    def _check_reset(self) -> None:
        if self.isolation == "reset" and self.reset is None:
            raise fields.field_error("MCPServer", "reset", "is needed: a tool's name or a function")
        if self.isolation != "reset" and self.reset is not None:
            raise fields.field_error("MCPServer", "reset", 'needs isolation="reset"')

    @property
    def label(self) -> str:
        """Name in messages: its name, address or command."""
        if self.name is not None:
            return self.name
        if self.url is not None:
            return self.url
        return " ".join([*(self.command or ()), *self.args])


@dataclass(frozen=True, slots=True)
class CLIServer:
    """A command-line program as one tool, `<prefix>_execute(args)`; never given to a shell."""

    name: str
    command: str
    tool_prefix: str | None = None
    shell: Literal[False] | None = None
    """Accepted for compatibility and always off: a shell would run the model's text."""
    cwd: str | Path | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    discover_help: bool = False
    help_flag: str = "--help"
    description: str | None = None
    timeout: float = 30.0
    """Timeout of a call in seconds."""
    allowed_subcommands: Sequence[str] | None = None
    output_cap_bytes: int = OUTPUT_CAP_BYTES

    def __post_init__(self) -> None:
        _check_server("CLIServer", self)
        for name in ("name", "command", "help_flag"):
            fields.require_text("CLIServer", name, getattr(self, name))
        fields.require_text("CLIServer", "description", self.description, optional=True)
        if self.shell:
            raise fields.field_error(
                "CLIServer", "shell", "is always off: a shell would run what a model writes"
            )
        if _PREFIX.fullmatch(self.prefix) is None:
            where = "name" if self.tool_prefix is None else "tool_prefix"
            raise fields.field_error(
                "CLIServer", where, f"must be letters, digits, _ and -, got {self.prefix!r}"
            )
        fields.require_seconds("CLIServer", "timeout", self.timeout)
        fields.require_number(
            "CLIServer", "output_cap_bytes", self.output_cap_bytes, least=1, whole=True
        )
        if self.allowed_subcommands is not None:
            allowed = fields.parse_texts(
                "CLIServer", "allowed_subcommands", self.allowed_subcommands
            )
            object.__setattr__(self, "allowed_subcommands", allowed)

    @property
    def prefix(self) -> str:
        """Prefix of the tool's name."""
        return self.name if self.tool_prefix is None else self.tool_prefix

    @property
    def tool_name(self) -> str:
        """Name of the server's only tool."""
        return f"{self.prefix}_execute"


def _check_server(owner: str, server: MCPServer | CLIServer) -> None:
    """Validate the fields of both kinds of server and copy the environment."""
    object.__setattr__(server, "env", fields.parse_text_mapping(owner, "env", server.env))
    if server.cwd is not None and not isinstance(server.cwd, str | Path):
        raise fields.field_error(owner, "cwd", f"must be a path, got {server.cwd!r}")


class SkillText(Protocol):
    """The part of a skill that an agent needs."""

    @property
    def name(self) -> str:
        """The skill's name."""

    @property
    def content(self) -> str:
        """The skill's instructions, which precede the system prompt."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent under test: a model with tools and instructions."""

    provider: Provider
    name: str | None = None
    mcp_servers: Sequence[MCPServer] = ()
    cli_servers: Sequence[CLIServer] = ()
    system_prompt: str | None = None
    skill: SkillText | None = None
    max_turns: int = 10
    """Maximum responses of the model in one run."""
    allowed_tools: Sequence[str] | None = None
    """The tools it may use; unset: all. Each must exist when a run begins."""
    retries: int = 1
    """Consecutive errors of a tool before the run ends."""
    steering: SteeringSettings | None = None
    """Rules for held-back calls; unset: those of the session, by default none."""

    def __post_init__(self) -> None:
        if not isinstance(self.provider, Provider):
            raise fields.field_error(
                "Agent", "provider", f"must be a Provider, got {self.provider!r}"
            )
        fields.require_text("Agent", "name", self.name, optional=True)
        if self.system_prompt is not None and not isinstance(self.system_prompt, str):
            raise fields.field_error("Agent", "system_prompt", "must be a text")
        fields.require_number("Agent", "max_turns", self.max_turns, least=1, whole=True)
        fields.require_number("Agent", "retries", self.retries, least=0, whole=True)
        check_steering("Agent", self.steering)
        self._set_servers("mcp_servers", MCPServer)
        self._set_servers("cli_servers", CLIServer)
        if self.allowed_tools is not None:
            allowed = fields.parse_texts("Agent", "allowed_tools", self.allowed_tools)
            object.__setattr__(self, "allowed_tools", allowed)

    def _set_servers(self, name: str, kind: type) -> None:
        servers = getattr(self, name)
        if isinstance(servers, kind) or not all(isinstance(item, kind) for item in servers):
            raise fields.field_error("Agent", name, f"must be a list of {kind.__name__}")
        object.__setattr__(self, name, tuple(servers))

    @property
    def label(self) -> str:
        """Name in reports: its name or its model."""
        return self.provider.model_id if self.name is None else self.name

    @property
    def instructions(self) -> str | None:
        """The skill's content, then the system prompt; None without both."""
        parts = [self.skill.content if self.skill else None, self.system_prompt]
        return "\n\n".join(part for part in parts if part) or None


def check_steering(owner: str, value: object) -> None:
    """Raise InputError unless the value is None or hashable SteeringSettings."""
    if value is None:
        return
    if not isinstance(value, SteeringSettings):
        raise fields.field_error(owner, "steering", f"must be SteeringSettings, got {value!r}")
    try:
        hash(value)
    except TypeError:
        raise fields.field_error(
            owner, "steering", "must hold tuples where it has several values"
        ) from None
