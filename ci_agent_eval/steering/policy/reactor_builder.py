"""Builder of the reactor for given settings. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ci_agent_eval.steering.policy.handlers import (
    DangerousCommandHandler,
    FullSuiteHandler,
    RuleHandler,
)
from ci_agent_eval.steering.policy.message import Adviser, give_no_advice
from ci_agent_eval.steering.policy.model import SuiteCounter
from ci_agent_eval.steering.policy.reactor import Handler, Reactor
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.policy.warned_commands import WarnedCommands


def build_reactor(
    settings: SteeringSettings,
    memory: WarnedCommands,
    *,
    count: SuiteCounter | None = None,
    advise: Adviser = give_no_advice,
) -> Reactor:
    """Build the chain of handlers that the settings enable.

    `count` returns the number of tests of a targeted run; without it `max_collected` has no effect.
    `advise` returns what an agent may run instead of the whole suite.
    """
    return Reactor(_build_handlers(settings, memory, count, advise))


def _build_handlers(
    settings: SteeringSettings, memory: WarnedCommands, count: SuiteCounter | None, advise: Adviser
) -> Iterator[Handler]:
    tools = settings.rules.shell_tools
    if settings.dangerous:
        yield DangerousCommandHandler(settings.dangerous, tools)
    if settings.enabled:
        rules = replace(settings.rules, count=count) if count else settings.rules
        yield FullSuiteHandler(settings.message, settings.priority, rules, memory, advise)
    for rule in settings.general:
        yield RuleHandler(rule, re.compile(rule.pattern), memory, tools)
