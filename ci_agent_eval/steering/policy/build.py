"""Settings in, reactor out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ci_agent_eval.steering.policy.handlers import (
    DangerousHandler,
    FullSuiteHandler,
    GeneralHandler,
)
from ci_agent_eval.steering.policy.model import Count
from ci_agent_eval.steering.policy.reactor import Handler, Reactor
from ci_agent_eval.steering.policy.sessions import WarnedCommands
from ci_agent_eval.steering.policy.settings import SteeringSettings


def reactor_of(
    settings: SteeringSettings, memory: WarnedCommands, *, count: Count | None = None
) -> Reactor:
    """Return the chain that the settings describe.

    `count` says how many tests a targeted run has; without it `max_collected` has no effect.
    """
    return Reactor(_handlers(settings, memory, count))


def _handlers(
    settings: SteeringSettings, memory: WarnedCommands, count: Count | None
) -> Iterator[Handler]:
    tools = settings.rules.shell_tools
    if settings.dangerous:
        yield DangerousHandler(settings.dangerous, tools)
    if settings.enabled:
        rules = replace(settings.rules, count=count) if count else settings.rules
        yield FullSuiteHandler(settings.message, settings.priority, rules, memory)
    for rule in settings.general:
        yield GeneralHandler(rule, re.compile(rule.pattern), memory, tools)
