"""The providers behind the gateway: their addresses and the variables that name them.

MODEL_PROVIDERS is the only list of base-URL variables. Sources: the SDKs' own documentation and
code, as of openai 3.52, anthropic 2.11, google-genai 2.34, botocore 1.44 and LiteLLM 1.83.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ci_agent_eval.errors import InputError
from ci_agent_eval.model_traffic.forwarding.upstream import Upstream, parse_upstream

DUMMY_KEY = "replay"
"""The value of key variables in replay."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A provider as its SDKs address it."""

    name: str
    """The provider's part of a gateway address."""
    url_variables: tuple[str, ...]
    """Environment variables that hold its base URL, for any SDK."""
    key_variables: tuple[str, ...]
    """Environment variables that hold its credentials."""
    default_url: str | None = None
    """The base URL without any variable; None: there is no single one."""
    version: str = ""
    """The first part of all paths (`/v1`); agents' base URLs may contain it or not."""
    is_in_base_url: bool = False
    """Whether the SDKs expect `version` in the base URL."""
    dummy_keys: int = 1
    """The number of the first key variables that a client needs."""


MODEL_PROVIDERS = (
    ModelProvider(
        "openai",
        ("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        ("OPENAI_API_KEY", "CODEX_API_KEY"),
        "https://api.openai.com/v1",
        "/v1",
        is_in_base_url=True,
    ),
    ModelProvider(
        "anthropic",
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        "https://api.anthropic.com",
        "/v1",
    ),
    ModelProvider(
        "gemini",
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"),
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "https://generativelanguage.googleapis.com",
    ),
    ModelProvider(
        "bedrock",
        ("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "ANTHROPIC_BEDROCK_BASE_URL"),
        (
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_BEARER_TOKEN_BEDROCK",
        ),
        "https://bedrock-runtime.{region}.amazonaws.com",
        dummy_keys=2,
    ),
    ModelProvider(
        "groq", ("GROQ_BASE_URL",), ("GROQ_API_KEY",), "https://api.groq.com", "/openai/v1"
    ),
    ModelProvider(
        "together",
        ("TOGETHER_BASE_URL",),
        ("TOGETHER_API_KEY",),
        "https://api.together.xyz/v1",
        "/v1",
        is_in_base_url=True,
    ),
    ModelProvider(
        "azure",
        ("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE"),
        ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
    ),
    ModelProvider("vertex", ("GOOGLE_VERTEX_BASE_URL",), ()),
    ModelProvider("foundry", ("ANTHROPIC_FOUNDRY_BASE_URL",), ("ANTHROPIC_FOUNDRY_API_KEY",)),
)


def find_base_url(provider: ModelProvider, environ: Mapping[str, str]) -> str | None:
    """Return the base URL that the environment names, else the default.

    Raises InputError if two of the provider's variables differ.
    """
    named = {
        name: environ[name].rstrip("/") for name in provider.url_variables if environ.get(name)
    }
    if len(set(named.values())) > 1:
        raise InputError(
            f"{' and '.join(named)} hold different addresses, and the gateway has one for both. "
            "Set them to the same address, or only one"
        )
    return next(iter(named.values()), provider.default_url)


def build_environment(
    episode_url: str, environ: Mapping[str, str], *, is_replay: bool
) -> dict[str, str]:
    """Return the variables that lead a subprocess's model calls to the gateway.

    `environ` holds the variables that it would have without the gateway. In replay its keys are
    dummies: those that `environ` names, or one for each provider if it names none.
    """
    variables = dict(_build_no_proxy(environ))
    for provider in MODEL_PROVIDERS:
        suffix = provider.version if provider.is_in_base_url else ""
        for name in provider.url_variables:
            if provider.default_url is not None or environ.get(name):
                variables[name] = f"{episode_url}/{provider.name}{suffix}"
    return {**variables, **_build_dummy_keys(environ)} if is_replay else variables


_OTHER_KEYS = ("MISTRAL_API_KEY", "OPENROUTER_API_KEY", "DEEPSEEK_API_KEY")
"""Key variables of providers that the gateway does not serve."""


def build_placeholder_keys(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the keys that the SDKs of this process need in replay, of providers without any."""
    needed = [
        name
        for provider in MODEL_PROVIDERS
        if not any(environ.get(name) for name in provider.key_variables)
        for name in provider.key_variables[: provider.dummy_keys]
    ]
    others = [name for name in _OTHER_KEYS if not environ.get(name)]
    return dict.fromkeys([*needed, *others], DUMMY_KEY)


def _build_dummy_keys(environ: Mapping[str, str]) -> dict[str, str]:
    all_keys = [name for provider in MODEL_PROVIDERS for name in provider.key_variables]
    needed_keys = [
        name
        for provider in MODEL_PROVIDERS
        if provider.default_url is not None
        for name in provider.key_variables[: provider.dummy_keys]
    ]
    named = [name for name in all_keys if name in environ]
    return dict.fromkeys(named or needed_keys, DUMMY_KEY)


def _build_no_proxy(environ: Mapping[str, str]) -> dict[str, str]:
    """Keep requests to the gateway away from a proxy that the environment names."""
    if not any(name.lower() in {"http_proxy", "all_proxy"} for name in environ):
        return {}
    exempt = environ.get("no_proxy") or environ.get("NO_PROXY") or ""
    value = ",".join(part for part in (exempt, "127.0.0.1") if part)
    return {"NO_PROXY": value, "no_proxy": value}


@dataclass(frozen=True, slots=True)
class ProviderRoute:
    """The way from the gateway's address of a provider to the provider."""

    provider: ModelProvider
    base_url: str | None
    """None: neither a default nor a variable names it."""
    variable: str
    """The name in messages about the address."""
    region: str | None = None
    """The AWS region of requests whose signature names none."""

    def find_upstream(self, path: bytes, region: str | None) -> tuple[Upstream, bytes]:
        """Return the upstream and the path there for a path below the gateway's address.

        Raises InputError if the address is unknown or invalid.
        """
        if self.base_url is None:
            raise InputError(
                f"No address is known for {self.provider.name}. Set {self.variable} for the agent"
            )
        region = region or self.region
        if "{region}" in self.base_url and region is None:
            raise InputError("The request to Bedrock names no region. Set AWS_REGION for the agent")
        address = self.base_url.replace("{region}", region or "")
        upstream = parse_upstream(address, self.variable)
        version = self.provider.version.encode()
        rest = path.removeprefix(version) if path.startswith(version + b"/") else path
        has_version = self.provider.is_in_base_url or upstream.prefix.endswith(version)
        return upstream, rest if has_version else version + rest


def build_routes(environ: Mapping[str, str]) -> dict[str, ProviderRoute]:
    """Return the routes by the provider's name. Raises InputError for contradicting variables."""
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION")
    return {
        provider.name: ProviderRoute(
            provider, find_base_url(provider, environ), provider.url_variables[0], region
        )
        for provider in MODEL_PROVIDERS
    }
