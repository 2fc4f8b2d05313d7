"""The decision for a hook: the settings, the memory on disk and the clock, put together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ci_agent_eval.steering.hook.agents import Agent, Asked, Event
from ci_agent_eval.steering.policy.build import build_reactor
from ci_agent_eval.steering.policy.model import Decision, SuiteCounter
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.store import SqliteWarnedCommands


def reviewer(
    settings: SteeringSettings,
    store: Path,
    clock: Callable[[], float],
    counter: Callable[[Path], SuiteCounter],
) -> Callable[[Asked, Agent, Event], Decision]:
    """Return what decides on events; `counter` makes what counts the tests of a folder.

    `clock` gives seconds that all processes share.
    """

    def review(asked: Asked, agent: Agent, event: Event) -> Decision:
        memory = SqliteWarnedCommands(store, ttl=settings.ttl)
        counts = settings.enabled and settings.rules.max_collected is not None
        count = counter(_folder(event)) if counts else None
        session = f"{agent.name}\n{asked.session}" if asked.session else None
        return build_reactor(settings, memory, count=count).review(asked.call, session, clock())

    return review


def _folder(event: Event) -> Path:
    """Return where the agent's command would run."""
    given = event.get("cwd")
    folder = Path(given) if isinstance(given, str) and given else Path.cwd()
    return folder if folder.is_dir() else Path.cwd()
