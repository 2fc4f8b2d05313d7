"""Diagnosis whether steering holds the full runs of a coding agent, proved with the agent."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.doctor.agent_launch import LAUNCHES, LaunchPlace
from ci_agent_eval.steering.doctor.hook_command import find_command_problem
from ci_agent_eval.steering.doctor.throwaway import (
    MESSAGE,
    AgentRun,
    build_environ,
    make_place,
    run_agent,
    run_limited,
)
from ci_agent_eval.steering.hook.agent_settings import AGENT_SETTINGS, AgentSettings
from ci_agent_eval.steering.hook.install import read_hook_commands

Outcome = Literal["held", "not held", "not proved"]

EXIT_CODES: Mapping[Outcome, int] = {"held": 0, "not held": 1, "not proved": 2}

_SHOWN_CHARS = 500


@dataclass(frozen=True, slots=True)
class AgentDiagnosis:
    """The outcome for one agent, with the reason and what to do."""

    agent: str
    outcome: Outcome
    reason: str

    def render(self) -> str:
        """Return one line."""
        return f"{self.agent}: {self.outcome}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Machine:
    """The user's folders and environment."""

    root: Path
    home: Path
    environ: Mapping[str, str]


def find_agents_with_hook(machine: Machine) -> list[str]:
    """Return the agents that have the hook in the project's or the user's settings."""
    return [name for name in AGENT_SETTINGS if _has_hook(AGENT_SETTINGS[name], machine)]


def _has_hook(agent: AgentSettings, machine: Machine) -> bool:
    try:
        return bool(_find_hooks(agent, machine))
    except InputError:
        return True  # The diagnosis reports it.


def _find_hooks(agent: AgentSettings, machine: Machine) -> list[tuple[Path, str]]:
    """Return the commands of the hooks with their files. Raises InputError."""
    paths = [agent.get_path(root, machine.environ, machine.home) for root in (machine.root, None)]
    return [(path, command) for path in paths for command in read_hook_commands(agent, path)]


def diagnose_agent(name: str, machine: Machine) -> AgentDiagnosis:
    """Check the settings and the hook, and run the agent. Raises InputError for broken files."""
    agent = AGENT_SETTINGS[name]
    hooks = _find_hooks(agent, machine)
    if not hooks:
        install = f"agent-eval steer install --for {name}"
        return AgentDiagnosis(name, "not held", f"no settings contain the hook; run `{install}`")
    path_variable = machine.environ.get("PATH", "")
    for path, command in hooks:
        command_problem = find_command_problem(command)
        if command_problem is not None:
            reason = f"{path}: {command_problem}; run `agent-eval steer install` again"
            return AgentDiagnosis(name, "not held", reason)
    launch = LAUNCHES.get(name)
    if launch is None:
        return AgentDiagnosis(name, "not proved", "its agent runs only with its own service")
    user_folder = agent.get_user_folder(machine.environ, machine.home)
    with make_place(launch, agent, machine.root, user_folder) as place:
        problem = _try_hook(agent, hooks[0][1], place, path_variable)
        if problem is not None:
            return AgentDiagnosis(name, "not held", f"the hook let a full run through: {problem}")
        program_path = shutil.which(launch.program, path=path_variable)
        if program_path is None:
            reason = f"`{launch.program}` is not on the PATH; the hook itself works"
            return AgentDiagnosis(name, "not proved", reason)
        in_project = agent.get_path(machine.root, machine.environ, machine.home) == hooks[0][0]
        needs_trust = bool(launch.untrusted) and (in_project or launch.user_hooks_need_trust)

        def run(trusted: bool) -> AgentRun:
            return run_agent(Path(program_path), launch, place, path_variable, trusted=trusted)

        outcome, reason = _diagnose_runs(program_path, run, launch.untrusted if needs_trust else "")
        if place.problems:
            outcome = "not proved" if outcome == "held" else outcome
            reason = "; ".join((reason, *place.problems))
        return AgentDiagnosis(name, outcome, reason)


def _diagnose_runs(
    program: str, run_with_trust: Callable[[bool], AgentRun], untrusted: str
) -> tuple[Outcome, str]:
    """Run the agent as the user does and, if it does not ask the hook, with trust."""
    run = run_with_trust(not untrusted)
    if not run.is_held and untrusted:
        trusted_run = run_with_trust(True)
        if trusted_run.is_held:
            return "not held", untrusted
        run = run if run.results else trusted_run
    if run.is_held:
        return "held", f"{program} got the message in place of the test run"
    if not run.results:
        return "not proved", f"{program} ran no command{_describe_end(run)}"
    return "not held", f"{program} ran the tests without asking the hook; is it switched off there?"


def _describe_end(run: AgentRun) -> str:
    ended = "did not end in time" if run.exit_code is None else f"exit code {run.exit_code}"
    text = " ".join(run.output.split())[-_SHOWN_CHARS:]
    return f" ({ended}): {text}" if text else f" ({ended})"


def _try_hook(agent: AgentSettings, command: str, place: LaunchPlace, path: str) -> str | None:
    """Send an event to the hook; return why it allows a full run, or None if it denies it."""
    event = json.dumps({**_EVENTS.get(agent.name, {}), "cwd": str(place.project)})
    environ = build_environ(place, path)
    _, output = run_limited(shlex.split(command), place.project, environ, event)
    if MESSAGE in output:
        return None
    return " ".join(output.split())[-_SHOWN_CHARS:] or "it gave no reason"


def _build_event(event: str, tool: str) -> Mapping[str, object]:
    return {"hook_event_name": event, "tool_name": tool, "tool_input": {"command": "pytest -q"}}


_EVENTS: Mapping[str, Mapping[str, object]] = {
    "claude-code": _build_event("PreToolUse", "Bash"),
    "codex": _build_event("PreToolUse", "Bash"),
    "qwen-code": _build_event("PreToolUse", "run_shell_command"),
    "gemini": _build_event("BeforeTool", "run_shell_command"),
    "opencode": _build_event("tool.execute.before", "bash"),
    "copilot": {"toolName": "bash", "toolArgs": {"command": "pytest -q"}},
}


def get_exit_code(diagnoses: Sequence[AgentDiagnosis]) -> int:
    """Return 1 if a full run would not be held, else 2 if that is not proved, else 0."""
    codes = {EXIT_CODES[each.outcome] for each in diagnoses}
    return next((code for code in (1, 2) if code in codes), 0)
