"""What steering can be told: names, defaults and meanings. Pure; `steer/settings.py` reads it."""

from __future__ import annotations

from dataclasses import dataclass, field

from ci_agent_eval.steering.policy.model import Rules
from ci_agent_eval.steering.policy.warned_commands import DEFAULT_TTL

RESEND = (
    " If you still believe you need to run the whole test suite, please re-send your tool call "
    "and it will be executed."
)
"""Left out where a call names no session: sent again it would be held back again."""

DEFAULT_MESSAGE = (
    "You requested to run the whole test suite. This may be a lengthy process. "
    f"Please consider running only selected tests for optimal speed.{RESEND}"
)

DEFAULT_PRIORITY = 95
"""After dangerous commands, before general rules."""

DANGEROUS_PRIORITY = 100
GENERAL_PRIORITY = 50


@dataclass(frozen=True, slots=True)
class GeneralRule:
    """A rule of the user's: calls whose text matches `pattern` get `message`."""

    name: str
    pattern: str
    """A regular expression of Python, searched in the command; in the arguments as JSON where
    the tool runs no commands."""
    message: str
    tools: tuple[str, ...] = ()
    """Names of tools, in any case, or `*`; empty: those that run commands."""
    priority: int = GENERAL_PRIORITY
    once: bool = False
    """Let the same call through when it comes again in the same session."""


@dataclass(frozen=True, slots=True)
class SteeringSettings:
    """How tool calls are steered. `enabled` is about full-suite runs alone, and off by default."""

    enabled: bool = False
    message: str = DEFAULT_MESSAGE
    ttl: float = DEFAULT_TTL
    """Seconds after its last use for which a session is remembered."""
    priority: int = DEFAULT_PRIORITY
    rules: Rules = field(default_factory=Rules)
    dangerous: tuple[str, ...] = ()
    """Names of sets of dangerous commands, of `dangerous.DANGEROUS`; empty: none is held back."""
    general: tuple[GeneralRule, ...] = ()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is held back at all."""
        return not (self.enabled or self.dangerous or self.general)
