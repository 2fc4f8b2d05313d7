"""Declarations of a test: provider, tool servers, skill, agent. Frozen values without I/O.

An invalid value raises InputError, which names the field.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

from pydantic import AfterValidator, Field, InstanceOf, JsonValue, NonNegativeInt, PositiveInt

from ci_agent_eval.contract.fields import (
    WRAP_SINGLE,
    NonBlankText,
    NonNegativeNumber,
    Seconds,
    TextList,
    TextMapping,
    compile_pattern,
    field_error,
    tuple_of,
    validate_fields,
)
from ci_agent_eval.redaction import find_header_secrets, find_secrets
from ci_agent_eval.steering.policy.settings import SteeringSettings

Transport = Literal["stdio", "sse", "streamable-http"]
Isolation = Literal["shared", "reset", "per_episode"]
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
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

    model: NonBlankText
    """`azure/gpt-5-mini` or `openai:gpt-5-mini`: the provider, then the model's own name."""
    temperature: NonNegativeNumber | None = None
    max_tokens: PositiveInt | None = None
    """Maximum tokens of one response."""
    rpm: PositiveInt | None = None
    """Requests per minute, over all episodes of the process."""
    tpm: PositiveInt | None = None
    """Tokens per minute, input plus output, over all episodes of the process."""
    base_url: NonBlankText | None = None
    """Address of another server with the provider's API; unset: the provider's address."""
    api_key_env: NonBlankText | None = None
    """Environment variable of the key; unset: the provider's usual variable."""
    top_p: Annotated[int | float, Field(gt=0, le=1), "a number above 0 and up to 1"] | None = None
    """Nucleus sampling; set either this or the temperature."""
    seed: Annotated[int, "a whole number"] | None = None
    """Seed of the sampling, where the API takes one."""
    reasoning_effort: ReasoningEffort | None = None
    """Effort of a reasoning model; other providers than OpenAI get their nearest level."""
    timeout_s: Seconds | None = None
    """Seconds until the answer to one request; unset: the timeout of the provider's client."""
    headers: TextMapping = field(default_factory=dict, repr=False, hash=False)
    """HTTP headers of each request."""
    extra_body: Mapping[str, Annotated[JsonValue, "a JSON value"]] = field(
        default_factory=dict, repr=False, hash=False
    )
    """Keys added to the body of each request."""

    def __post_init__(self) -> None:
        validate_fields(self)
        if _MODEL.fullmatch(self.model) is None:
            raise field_error(
                "Provider",
                "model",
                f"{self.model!r} names no provider; write openai:gpt-5-mini or azure/gpt-5-mini",
            )

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
        match = _MODEL.fullmatch(self.model)
        assert match is not None  # noqa: S101 - `__post_init__` refused anything else
        return match


def _check_pattern(text: str) -> str:
    compile_pattern(text)
    return text


@dataclass(frozen=True, slots=True)
class Wait:
    """Conditions of a server's readiness, in addition to a first answer."""

    tools: TextList = ()
    """Tools that the server must offer."""
    log: Annotated[NonBlankText, AfterValidator(_check_pattern)] | None = None
    """A regular expression that a line of the server's stderr must match."""
    timeout_s: Seconds | None = None
    """Seconds; unset: the server's `startup_timeout_s`."""

    def __post_init__(self) -> None:
        validate_fields(self)

    @classmethod
    def ready(cls, timeout_s: float | None = None) -> Wait:
        """Wait until the server answers the protocol's first message."""
        return cls(timeout_s=timeout_s)

    @classmethod
    def for_tools(cls, tools: Sequence[str], timeout_s: float | None = None) -> Wait:
        """Wait until the server offers these tools."""
        return cls(tools=tools, timeout_s=timeout_s)

    @classmethod
    def for_log(cls, pattern: str, timeout_s: float | None = None) -> Wait:
        """Wait until a line of the server's stderr matches."""
        return cls(log=pattern, timeout_s=timeout_s)


@dataclass(frozen=True, slots=True)
class MCPServer:
    """A tool server with the Model Context Protocol."""

    command: Annotated[TextList, WRAP_SINGLE, "a text or a list of texts"] | None = None
    """The program and its first arguments (stdio); never given to a shell."""
    args: TextList = ()
    env: TextMapping = field(default_factory=dict, repr=False, hash=False)
    """Environment variables of the server, besides the few that a program needs to start."""
    wait: InstanceOf[Wait] | None = None
    cwd: str | Path | None = None
    transport: Transport = "stdio"
    url: NonBlankText | None = None
    headers: TextMapping = field(default_factory=dict, repr=False, hash=False)
    isolation: Isolation = "shared"
    """Whether episodes share the server, share it with a reset between, or have one each."""
    reset: Reset | None = None
    startup_timeout_s: Seconds = 30.0
    call_timeout_s: Seconds = 60.0
    name: str | None = None

    def __post_init__(self) -> None:
        validate_fields(self)
        self._check_address()
        self._check_reset()

    def _check_address(self) -> None:
        local = self.transport == "stdio"
        if local and not self.command:
            raise field_error("MCPServer", "command", "is needed by the transport stdio")
        if not local and self.url is None:
            raise field_error("MCPServer", "url", f"is needed by the transport {self.transport}")
        if local and self.url is not None:
            raise field_error("MCPServer", "url", "needs the transport sse or streamable-http")

    def _check_reset(self) -> None:
        if self.isolation == "reset" and self.reset is None:
            raise field_error("MCPServer", "reset", "is needed: a tool's name or a function")
        if self.isolation != "reset" and self.reset is not None:
            raise field_error("MCPServer", "reset", 'needs isolation="reset"')

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

    name: NonBlankText
    command: NonBlankText
    tool_prefix: str | None = None
    shell: Literal[False] | None = None
    """Accepted for compatibility and always off: a shell would run the model's text."""
    cwd: str | Path | None = None
    env: TextMapping = field(default_factory=dict, repr=False, hash=False)
    discover_help: bool = False
    help_flag: NonBlankText = "--help"
    description: NonBlankText | None = None
    timeout: Seconds = 30.0
    """Timeout of a call in seconds."""
    allowed_subcommands: TextList | None = None
    output_cap_bytes: PositiveInt = OUTPUT_CAP_BYTES

    def __post_init__(self) -> None:
        if self.shell:
            raise field_error(
                "CLIServer", "shell", "is always off: a shell would run what a model writes"
            )
        validate_fields(self)
        if _PREFIX.fullmatch(self.prefix) is None:
            where = "name" if self.tool_prefix is None else "tool_prefix"
            raise field_error(
                "CLIServer", where, f"must be letters, digits, _ and -, got {self.prefix!r}"
            )

    @property
    def label(self) -> str:
        """Name in messages."""
        return self.name

    @property
    def prefix(self) -> str:
        """Prefix of the tool's name."""
        return self.name if self.tool_prefix is None else self.tool_prefix

    @property
    def tool_name(self) -> str:
        """Name of the server's only tool."""
        return f"{self.prefix}_execute"


@runtime_checkable
class SkillText(Protocol):
    """The part of a skill that an agent needs."""

    @property
    def name(self) -> str:
        """The skill's name."""

    @property
    def content(self) -> str:
        """The skill's instructions, which precede the system prompt."""


def _check_hashable(steering: SteeringSettings) -> SteeringSettings:
    try:
        hash(steering)
    except TypeError:
        raise ValueError("must hold tuples where it has several values") from None
    return steering


Steering = Annotated[InstanceOf[SteeringSettings], AfterValidator(_check_hashable)]


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent under test: a model with tools and instructions."""

    provider: InstanceOf[Provider]
    name: NonBlankText | None = None
    mcp_servers: Annotated[
        Sequence[MCPServer], tuple_of(InstanceOf[MCPServer]), "a list of MCPServer"
    ] = ()
    cli_servers: Annotated[
        Sequence[CLIServer], tuple_of(InstanceOf[CLIServer]), "a list of CLIServer"
    ] = ()
    system_prompt: str | None = None
    skill: SkillText | None = None
    max_turns: PositiveInt = 10
    """Maximum responses of the model in one run."""
    allowed_tools: TextList | None = None
    """The tools it may use; unset: all. Each must exist when a run begins."""
    retries: NonNegativeInt = 1
    """Consecutive errors of a tool before the run ends."""
    steering: Steering | None = None
    """Rules for held-back calls; unset: those of the session, by default none."""

    def __post_init__(self) -> None:
        validate_fields(self)

    @property
    def label(self) -> str:
        """Name in reports: its name or its model."""
        return self.provider.model_id if self.name is None else self.name

    @property
    def servers(self) -> Sequence[MCPServer | CLIServer]:
        """All tool servers, each once."""
        return tuple(dict.fromkeys([*self.mcp_servers, *self.cli_servers]))

    @property
    def instructions(self) -> str | None:
        """The skill's content, then the system prompt; None without both."""
        parts = [self.skill.content if self.skill else None, self.system_prompt]
        return "\n\n".join(part for part in parts if part) or None


def find_declared_secrets(agent: Any, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets of an agent's declaration, including the key of its model.

    An agent adapter may have them in `env`, `headers`, `url` and `command`.
    """
    if not isinstance(agent, Agent):
        yield from find_server_secrets(agent)
        return
    yield from _find_provider_secrets(agent.provider, environ)
    for server in (*agent.mcp_servers, *agent.cli_servers):
        yield from find_server_secrets(server)


def find_server_secrets(declared: Any) -> Iterator[str]:
    """Yield the secrets in the declaration of one server."""
    for name, value in _get_mapping(declared, "env").items():
        yield from find_secrets(name, value)
    for name, value in _get_mapping(declared, "headers").items():
        yield from find_header_secrets(name, value)
    url = getattr(declared, "url", None)
    if isinstance(url, str):
        yield from find_secrets("url", url)
    yield from _find_command_secrets(
        [*_get_words(declared, "command"), *_get_words(declared, "args")]
    )


def _find_provider_secrets(provider: Provider, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the key, for any name of its variable, the password of the address, and headers."""
    if provider.api_key_env is not None and provider.api_key_env in environ:
        yield from find_secrets("API_KEY", environ[provider.api_key_env])
    yield from find_secrets("url", provider.base_url or "")
    for name, value in provider.headers.items():
        yield from find_header_secrets(name, value)
    for name, text in provider.extra_body.items():
        if isinstance(text, str):
            yield from find_secrets(name, text)


def _find_command_secrets(words: Sequence[str]) -> Iterator[str]:
    """Yield the secrets of a command line: `--api-key VALUE`, `--api-key=VALUE`, `KEY=VALUE`."""
    for word, following in zip_longest(words, words[1:], fillvalue=""):
        name, is_set, value = word.partition("=")
        if is_set:
            yield from find_secrets(name.lstrip("-"), value)
        elif name.startswith("-") and not following.startswith("-"):
            yield from find_secrets(name.lstrip("-"), following)


def _get_mapping(declared: Any, name: str) -> Mapping[str, str]:
    mapping = getattr(declared, name, None)
    return mapping if isinstance(mapping, Mapping) else {}


def _get_words(declared: Any, name: str) -> Sequence[str]:
    words = getattr(declared, name, None)
    if isinstance(words, str):
        return words.split()
    is_list = isinstance(words, list | tuple)
    return [word for word in words if isinstance(word, str)] if is_list and words else []
