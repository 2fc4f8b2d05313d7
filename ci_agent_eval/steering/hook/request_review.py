"""Review of a hook's request with the settings, the stored memory and the clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ci_agent_eval.steering.hook.answer_identity import find_answer_id
from ci_agent_eval.steering.hook.coding_agents import CodingAgent, HookEvent, HookRequest
from ci_agent_eval.steering.policy.model import Allow, Decision
from ci_agent_eval.steering.policy.reactor import Adviser, build_reactor
from ci_agent_eval.steering.policy.settings import SteeringSettings
from ci_agent_eval.steering.pytest_project import build_project_finder
from ci_agent_eval.steering.store import SteeringStore


def build_reviewer(
    settings: SteeringSettings,
    store: Path,
    clock: Callable[[], float],
    build_adviser: Callable[[Path], Adviser],
) -> Callable[[HookRequest, CodingAgent, HookEvent], Decision]:
    """Return a function that decides on requests; `build_adviser` gets the command's folder.

    `clock` returns seconds of a clock shared by all processes.
    """

    def review(request: HookRequest, agent: CodingAgent, event: HookEvent) -> Decision:
        memory = SteeringStore(store, settings.ttl, lambda: find_answer_id(event))
        session = f"{agent.name}\n{request.session}" if request.session else None
        if request.ended:
            if session is not None and request.seconds is not None:
                memory.record_duration(session, request.call, request.seconds)
            return Allow("the call has ended")
        folder = _get_folder(event)
        reactor = build_reactor(
            settings,
            memory,
            find_project=build_project_finder(folder),
            advise=build_adviser(folder),
            ledger=memory,
        )
        return reactor.review(request.call, session, clock())

    return review


def _get_folder(event: HookEvent) -> Path:
    """Return the working directory of the agent's command."""
    cwd = event.get("cwd")
    folder = Path(cwd) if isinstance(cwd, str) and cwd else Path.cwd()
    return folder if folder.is_dir() else Path.cwd()
