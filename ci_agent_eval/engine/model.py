"""PydanticAI models of providers."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any, cast

from openai import AsyncOpenAI
from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers import Provider as ModelProvider
from pydantic_ai.providers import infer_provider_class
from pydantic_ai.settings import ModelSettings

from ci_agent_eval.engine.declarations import Provider
from ci_agent_eval.errors import InputError

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "azure": ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
    "azure-responses": ("AZURE_OPENAI_API_KEY", "AZURE_API_KEY"),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "cohere": ("CO_API_KEY",),
}
"""Environment variables of the providers' keys; other providers find their keys."""

_BASE_URL_OPTIONS: Mapping[str, str] = {"litellm": "api_base"}
"""The base URL option of providers whose client falls back to OpenAI's address."""
_AZURE_ENDPOINTS = ("AZURE_OPENAI_ENDPOINT", "AZURE_API_BASE")
_AZURE_VERSIONS = ("OPENAI_API_VERSION", "AZURE_API_VERSION")
_FIELDS: Mapping[str, str] = {"timeout": "timeout_s", "extra_headers": "headers"}
"""The fields of a provider whose settings have other names in PydanticAI."""
NO_KEY = "no-key"
"""Key for servers that need none, and for replay, where nothing is sent."""


def build_model(provider: Provider, environ: Mapping[str, str], *, offline: bool = False) -> Model:
    """Build the model of a provider, with its key from `environ`.

    An `offline` model is never called (a cassette answers) and needs no key. Raises
    InputError if the provider is unknown, not installed, has no key, or cannot send a setting.
    """
    try:
        connection = _create_connection(provider, environ, offline=offline)
        disable_client_retries(connection.client)
        model = _create_model(provider, connection)
        _check_settings(provider, model)
    except ImportError as error:
        raise InputError(
            f"provider {provider.model_id!r}: its library is not installed; "
            f"run: pip install 'pydantic-ai-slim[{provider.system}]' ({error})"
        ) from error
    except (UserError, ValueError, TypeError) as error:
        raise InputError(f"provider {provider.model_id!r}: {error}") from error
    return model


def disable_client_retries(client: object) -> None:
    """Disable a client's retries once; a copied client for each request would be slow."""
    if hasattr(client, "max_retries"):
        client.max_retries = 0


def build_model_settings(provider: Provider) -> ModelSettings:
    """Build the model settings that the provider sets, by their names in PydanticAI."""
    effort = provider.reasoning_effort
    settings = {
        "temperature": provider.temperature,
        "max_tokens": provider.max_tokens,
        "top_p": provider.top_p,
        "seed": provider.seed,
        "timeout": provider.timeout_s,
        "thinking": False if effort == "none" else effort,
        # As it is, for models whose abilities PydanticAI does not know.
        "openai_reasoning_effort": effort,
        "extra_headers": dict(provider.headers) or None,
        "extra_body": dict(provider.extra_body) or None,
    }
    return cast("ModelSettings", {k: value for k, value in settings.items() if value is not None})


def _check_settings(provider: Provider, model: Model) -> None:
    """Raise InputError for a setting that the model cannot send, instead of leaving it out."""
    unsupported = build_model_settings(provider).keys() & model.unsupported_settings
    refused = sorted(_FIELDS.get(name, name) for name in unsupported)
    if provider.reasoning_effort is not None and not _takes_effort(model):
        refused.append("reasoning_effort")
    if not _takes_sampling(provider, model):
        sampling = ("temperature", "top_p")
        refused += [name for name in sampling if getattr(provider, name) is not None]
    if refused:
        hint = " (openai-chat:MODEL takes a seed)" if "seed" in refused else ""
        raise InputError(
            f"provider {provider.model_id!r}: it takes no {' and no '.join(refused)}; "
            f"leave it out{hint}"
        )


def _takes_sampling(provider: Provider, model: Model) -> bool:
    """Return whether PydanticAI sends the sampling settings, which no model takes while it reasons.

    Otherwise it only warns.
    """
    profile = model.profile
    makers = ("anthropic", "bedrock")
    if any(profile.get(f"{maker}_disallows_sampling_settings", False) for maker in makers):
        return False
    if not profile.get("openai_supports_reasoning", False):
        return True
    if provider.reasoning_effort is None:
        return not profile.get("thinking_enabled_by_default", False)
    always = profile.get("thinking_always_enabled", False)
    return provider.reasoning_effort == "none" and not always


def _takes_effort(model: Model) -> bool:
    is_openai = isinstance(model, OpenAIChatModel | OpenAIResponsesModel)
    thinks = ("supports_thinking", "thinking_always_enabled")
    return is_openai or any(model.profile.get(name, False) for name in thinks)


def _create_model(provider: Provider, connection: ModelProvider[Any]) -> Model:
    """Create the model; OpenAI-compatible servers get chat completions."""
    if provider.system == "openai" and provider.base_url is not None:
        return OpenAIChatModel(provider.model_name, provider=connection)
    return infer_model(provider.model_id, lambda _: connection)


def _create_connection(
    provider: Provider, environ: Mapping[str, str], *, offline: bool
) -> ModelProvider[Any]:
    kind = infer_provider_class(provider.system)
    if provider.system in _BASE_URL_OPTIONS and provider.base_url is None:
        raise InputError(
            f"provider {provider.model_id!r}: it has no address of its own, and its client would "
            "ask OpenAI; set base_url to your server's address"
        )
    options: dict[str, str] = {}
    key = _find_api_key(provider, environ, offline=offline)
    if key is not None:
        options["api_key"] = key
    if provider.system.startswith("azure"):
        options |= _build_azure_options(provider, environ, offline=offline)
        return kind(**options)
    address_option = _BASE_URL_OPTIONS.get(provider.system, "base_url")
    has_option = address_option in signature(kind.__init__).parameters
    common = environ.get("OPENAI_BASE_URL") if provider.system.startswith("openai") else None
    if has_option and (address := provider.base_url or common):
        options[address_option] = address
    connection = kind(**options)
    if not has_option and provider.base_url is not None:
        _set_base_url(connection, provider.base_url, provider)
    return connection


def _set_base_url(connection: ModelProvider[Any], address: str, provider: Provider) -> None:
    """Set the address of a client whose provider has no option for it. Raises InputError."""
    if not isinstance(connection.client, AsyncOpenAI):
        raise InputError(
            f"provider {provider.model_id!r}: its client cannot ask another address; leave out "
            "base_url"
        )
    connection.client.base_url = address


def _find_api_key(provider: Provider, environ: Mapping[str, str], *, offline: bool) -> str | None:
    named = provider.api_key_env
    names = KEY_VARIABLES.get(provider.system, ()) if named is None else (named,)
    key = _get_first_set(names, environ)
    if key or not names:
        return key
    if offline or (named is None and provider.base_url is not None):
        return NO_KEY
    raise InputError(
        f"provider {provider.model_id!r}: {' or '.join(names)} is not set; set it to the key, "
        "name another variable by api_key_env, or replay a cassette (--cassette=replay)"
    )


def _build_azure_options(
    provider: Provider, environ: Mapping[str, str], *, offline: bool
) -> dict[str, str]:
    """Return Azure's endpoint and API version, from Azure's or LiteLLM's variables."""
    endpoint = provider.base_url or _get_first_set(_AZURE_ENDPOINTS, environ)
    if endpoint is None and not offline:
        raise InputError(
            f"provider {provider.model_id!r}: AZURE_OPENAI_ENDPOINT is not set; set it to "
            "the resource's address, or give base_url"
        )
    version = _get_first_set(_AZURE_VERSIONS, environ)
    options = {"azure_endpoint": endpoint or "https://offline.invalid/openai/v1/"}
    return options | ({"api_version": version} if version else {})


def _get_first_set(names: tuple[str, ...], environ: Mapping[str, str]) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)
