"""The decision for a hook: the settings, the memory on disk and the clock, put together."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ci_agent_eval.steering.hook.coding_agents import CodingAgent, HookEvent, HookRequest
from ci_agent_eval.steering.policy.build import build_reactor
from ci_agent_eval.steering.policy.model import Decision, SuiteCounter
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.sqlite_store import SqliteWarnedCommands


def build_reviewer(
    settings: SteeringSettings,
    store: Path,
    clock: Callable[[], float],
    counter: Callable[[Path], SuiteCounter],
) -> Callable[[HookRequest, CodingAgent, HookEvent], Decision]:
    """Return what decides on events; `counter` makes what counts the tests of a folder.

    `clock` gives seconds that all processes share.
    """

    def review(asked: HookRequest, agent: CodingAgent, event: HookEvent) -> Decision:
        memory = SqliteWarnedCommands(store, ttl=settings.ttl)
        counts = settings.enabled and settings.rules.max_collected is not None
        count = counter(_get_folder(event)) if counts else None
        session = f"{agent.name}\n{asked.session}" if asked.session else None
        return build_reactor(settings, memory, count=count).review(asked.call, session, clock())

    return review


def _get_folder(event: HookEvent) -> Path:
    """Return where the agent's command would run."""
    given = event.get("cwd")
    folder = Path(given) if isinstance(given, str) and given else Path.cwd()
    return folder if folder.is_dir() else Path.cwd()
