"""How each coding agent runs once without a person, against a model on the loopback. Pure.

The versions that were tried are in docs/steering.md. Cursor is missing: its command-line
agent talks to Cursor's own service only.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROMPT = "Run the tests."
_KEY = "none"
"""The key of the model on the loopback, which accepts any."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LaunchPlace:
    """Addresses and folders of one launch."""

    url: str
    """The model's address without a path."""
    home: Path
    project: Path


def _add_nothing(_place: LaunchPlace) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class AgentLaunch:
    """The command, environment and files of one agent's launch."""

    program: str
    build_arguments: Callable[[LaunchPlace], Sequence[str]]
    build_environ: Callable[[LaunchPlace], Mapping[str, str]]
    user_settings: Mapping[str, Any] = field(default_factory=dict)
    """The user's settings with which the agent starts at once."""
    build_trust: Callable[[LaunchPlace], Sequence[str]] = _add_nothing
    """Arguments that trust the project and its hooks, for this launch only."""
    trust_environ: Mapping[str, str] = field(default_factory=dict)


def _build_claude_arguments(place: LaunchPlace) -> Sequence[str]:
    # This option overrides the environment that a user's settings may set.
    settings = {"env": {"ANTHROPIC_BASE_URL": place.url, "ANTHROPIC_API_KEY": _KEY}}
    return ("-p", PROMPT, "--allowedTools", "Bash", "--settings", json.dumps(settings))


def _build_claude_environ(place: LaunchPlace) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": place.url,
        "ANTHROPIC_API_KEY": _KEY,
        "ANTHROPIC_MODEL": "claude-sonnet-5",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
    }


def _build_codex_arguments(place: LaunchPlace) -> Sequence[str]:
    provider = (
        f'model_providers.scripted={{name="scripted",base_url="{place.url}/v1",'
        f'wire_api="responses",env_key="SCRIPTED_KEY"}}'
    )
    return (
        "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
        "--model", "gpt-5-mini", "-c", provider, "-c", 'model_provider="scripted"',
        "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false",
        "--disable", "plugins", "--disable", "apps", "-c", "mcp_servers={}", PROMPT,
    )  # fmt: skip


def _build_codex_trust(place: LaunchPlace) -> Sequence[str]:
    trusted = f'projects={{"{place.project}"={{trust_level="trusted"}}}}'
    return ("-c", trusted, "--dangerously-bypass-hook-trust")


def _build_openai_environ(place: LaunchPlace) -> Mapping[str, str]:
    return {"OPENAI_API_KEY": _KEY, "OPENAI_BASE_URL": f"{place.url}/v1"}


def _build_opencode_environ(place: LaunchPlace) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": _KEY},
        "models": {"model": {"name": "model", "tool_call": True}},
    }
    config = {
        "provider": {"scripted": provider},
        "model": "scripted/model",
        "small_model": "scripted/model",
        "autoupdate": False,
        "share": "disabled",
    }
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }


LAUNCHES: Mapping[str, AgentLaunch] = {
    "claude-code": AgentLaunch(
        "claude",
        _build_claude_arguments,
        _build_claude_environ,
    ),
    "codex": AgentLaunch(
        "codex",
        _build_codex_arguments,
        lambda _: {"SCRIPTED_KEY": _KEY},
        build_trust=_build_codex_trust,
    ),
    "gemini": AgentLaunch(
        "gemini",
        lambda _: ("-p", PROMPT, "--yolo", "-m", "gemini-2.5-flash"),
        lambda place: {
            "GEMINI_API_KEY": _KEY,
            "GOOGLE_GEMINI_BASE_URL": place.url,
            "GEMINI_TELEMETRY_ENABLED": "false",
        },
        {
            "general": {"enableAutoUpdate": False},
            "privacy": {"usageStatisticsEnabled": False},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
        },
        trust_environ={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
    "qwen-code": AgentLaunch(
        "qwen",
        lambda _: ("-p", PROMPT, "--yolo", "--auth-type", "openai", "-m", "gpt-4.1"),
        _build_openai_environ,
        {"privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False}},
    ),
    "copilot": AgentLaunch(
        "copilot",
        lambda _: ("-p", PROMPT, "--allow-all-tools", "--disable-client-telemetry"),
        lambda place: {
            "COPILOT_PROVIDER_BASE_URL": f"{place.url}/v1",
            "COPILOT_PROVIDER_API_KEY": _KEY,
            "COPILOT_MODEL": "gpt-4.1",
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
        },
        build_trust=lambda _: ("--trust-folder",),
    ),
    "opencode": AgentLaunch(
        "opencode",
        lambda _: ("run", PROMPT),
        _build_opencode_environ,
    ),
}
"""The launches by the agents' names in `--for`."""
