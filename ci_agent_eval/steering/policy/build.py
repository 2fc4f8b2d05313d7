"""Settings in, reactor out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ci_agent_eval.steering.policy.handlers import (
    DangerousCommandHandler,
    FullSuiteHandler,
    RuleHandler,
)
from ci_agent_eval.steering.policy.model import SuiteCounter
from ci_agent_eval.steering.policy.reactor import Handler, Reactor
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.policy.warned_commands import WarnedCommands


def build_reactor(
    settings: SteeringSettings, memory: WarnedCommands, *, count: SuiteCounter | None = None
) -> Reactor:
    """Return the chain that the settings describe.

    `count` says how many tests a targeted run has; without it `max_collected` has no effect.
    """
    return Reactor(_build_handlers(settings, memory, count))


def _build_handlers(
    settings: SteeringSettings, memory: WarnedCommands, count: SuiteCounter | None
) -> Iterator[Handler]:
    tools = settings.rules.shell_tools
    if settings.dangerous:
        yield DangerousCommandHandler(settings.dangerous, tools)
    if settings.enabled:
        rules = replace(settings.rules, count=count) if count else settings.rules
        yield FullSuiteHandler(settings.message, settings.priority, rules, memory)
    for rule in settings.general:
        yield RuleHandler(rule, re.compile(rule.pattern), memory, tools)
