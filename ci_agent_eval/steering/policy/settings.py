"""Settings of steering with their defaults. Pure; `steering/settings_loader.py` loads them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.steering.policy.model import Rules

RESEND = (
    " If you still believe you need to run the whole test suite, please re-send your tool call "
    "and it will be executed."
)
"""Omitted for calls without a session, because a repeated call is steered again."""

DEFAULT_MESSAGE = (
    "You requested to run the whole test suite. This may be a lengthy process. "
    f"Please consider running only selected tests for optimal speed.{RESEND}"
)

DEFAULT_TTL = 1800.0
"""Seconds after its last use until a session expires."""

DEFAULT_PRIORITY = 95
"""After dangerous commands, before general rules."""

DANGEROUS_PRIORITY = 100
GENERAL_PRIORITY = 50


@dataclass(frozen=True, slots=True)
class GeneralRule:
    """A user-defined rule: calls with a text that matches `pattern` get `message`."""

    name: str
    pattern: str
    """A Python regular expression, searched in the command, or in the arguments as JSON if the
    tool runs no commands."""
    message: str
    tools: tuple[str, ...] = ()
    """Names of tools, in any case, or `*`; empty: all tools that run commands."""
    priority: int = GENERAL_PRIORITY
    once: bool = False
    """Let the same call through when it is repeated in the same session."""


@dataclass(frozen=True, slots=True)
class SteeringSettings:
    """Settings of steering. `enabled` applies only to full-suite runs and is off by default."""

    enabled: bool = False
    message: str = DEFAULT_MESSAGE
    ttl: float = DEFAULT_TTL
    """Seconds after its last use until a session expires."""
    priority: int = DEFAULT_PRIORITY
    rules: Rules = field(default_factory=Rules)
    dangerous: tuple[str, ...] = ()
    """Names of enabled sets of dangerous commands in `dangerous.DANGEROUS_SETS`."""
    general: tuple[GeneralRule, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Whether no call is ever steered."""
        return not (self.enabled or self.dangerous or self.general)
