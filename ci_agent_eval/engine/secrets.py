"""Secrets in declarations of tests, which may be missing in the environment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from ci_agent_eval.engine.declarations import Agent, Provider
from ci_agent_eval.redaction import find_header_secrets, find_secrets


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
