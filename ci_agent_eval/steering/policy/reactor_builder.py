"""Builder of the reactor for given settings. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from ci_agent_eval.steering.policy.call_ledger import NO_LEDGER, CallLedger
from ci_agent_eval.steering.policy.handlers import (
    DangerousCommandHandler,
    FullSuiteHandler,
    RuleHandler,
)
from ci_agent_eval.steering.policy.message import Adviser, give_no_advice
from ci_agent_eval.steering.policy.model import ProjectFinder
from ci_agent_eval.steering.policy.reactor import Handler, Reactor
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.policy.warned_commands import WarnedCommands


def build_reactor(
    settings: SteeringSettings,
    memory: WarnedCommands,
    *,
    find_project: ProjectFinder | None = None,
    advise: Adviser = give_no_advice,
    ledger: CallLedger = NO_LEDGER,
) -> Reactor:
    """Build the chain of handlers that the settings enable.

    `find_project` returns the project of a command's folder.
    `advise` returns what an agent may run instead of the whole suite; `ledger` records test runs.
    """
    rules = replace(settings.rules, find_project=find_project or settings.rules.find_project)
    full_suite = FullSuiteHandler(
        settings.message, settings.priority, rules, memory, advise, ledger
    )
    return Reactor(_build_handlers(settings, memory, full_suite))


def _build_handlers(
    settings: SteeringSettings, memory: WarnedCommands, full_suite: FullSuiteHandler
) -> Iterator[Handler]:
    tools = settings.rules.shell_tools
    if settings.dangerous:
        yield DangerousCommandHandler(settings.dangerous, tools)
    if settings.enabled:
        yield full_suite
    for rule in settings.general:
        yield RuleHandler(rule, re.compile(rule.pattern), memory, tools)
