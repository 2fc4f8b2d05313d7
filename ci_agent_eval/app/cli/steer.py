"""`agent-eval steer …`: prevent agents from running a whole pytest suite by accident.

The hook starts a process per command of a coding agent, so imports are lazy.
"""

# ruff: noqa: PLC0415 - see above

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_agent_eval.app.cli import SummaryGroup
from ci_agent_eval.app.cli.settings_options import (
    add_format_option,
    config_option,
    require_packages,
)
from ci_agent_eval.app.cli.steer_proxy import proxy
from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.agents import AGENTS, Agent

if TYPE_CHECKING:
    from ci_agent_eval.steering.policy.model import Rules
    from ci_agent_eval.steering.policy.settings import SteeringSettings

CHECK_EXIT_CODES = """\b
Exit codes of a check of one command:
  0    no full-suite run
  1    a full-suite run, which would be blocked
  2    usage, configuration or input error
With --jsonl: 0 if all lines were answered, and 2 as above.
"""


@click.group(cls=SummaryGroup)
def steer() -> None:
    """Prevent agents from running a whole pytest suite by accident."""


steer.add_command(proxy)


def _load_settings(config: Path | None) -> SteeringSettings:
    from ci_agent_eval.steering.settings_loader import load_steering_settings

    return load_steering_settings(root=Path.cwd(), environ=os.environ, config=config)


def _load_rules(config: Path | None) -> Rules:
    from dataclasses import replace

    from ci_agent_eval.steering.pytest_project import build_project_finder

    return replace(_load_settings(config).rules, find_project=build_project_finder(Path.cwd()))


@steer.command("check", epilog=CHECK_EXIT_CODES)
@click.argument("command", required=False)
@click.option(
    "--shell",
    type=click.Choice(["bash", "powershell", "cmd"]),
    default="bash",
    show_default=True,
    help="Shell syntax of COMMAND.",
)
@click.option("--jsonl", is_flag=True, help="Answer tool calls from standard input, one per line.")
@config_option
def check_command(command: str | None, shell: Any, config: Path | None, *, jsonl: bool) -> int:
    """Say whether COMMAND would run a whole pytest suite, and why.

    \b
    agent-eval steer check 'cd app && pytest -q | tail'
    printf '%s\\n' '{"tool": "bash", "arguments": "pytest"}' | agent-eval steer check --jsonl

    With --jsonl, each line {"tool": …, "arguments": …} is answered immediately and in order with
    {"pytest": …, "full_suite": …, "command": …, "reason": …}, or with {"error": …} if it is
    invalid.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    if jsonl is (command is not None):
        raise InputError("steer check: give either COMMAND or --jsonl")
    rules = _load_rules(config)
    require_packages("steering", "steering", "tree_sitter", "tree_sitter_bash")
    if command is None:
        return _answer_lines(rules)
    from ci_agent_eval.steering.advice import find_advice
    from ci_agent_eval.steering.policy.detection import detect_in_text
    from ci_agent_eval.steering.steer_check import render_detection

    finding = detect_in_text(command, shell=shell, rules=rules)
    if not finding.full_suite:
        click.echo(render_detection(finding), nl=False)
        return 0
    advice = find_advice(Path.cwd(), os.environ, finding)
    click.echo(render_detection(finding, advice), nl=False)
    return 1


def _answer_lines(rules: Rules) -> int:
    from ci_agent_eval.steering.steer_check import answer_lines

    try:
        for answer in answer_lines(sys.stdin.buffer, rules):
            sys.stdout.write(answer)
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader is gone. Redirect stdout, as Python's final flush would raise again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


HOOK_OPTIONS = """\b
Options of the hook:
  --for AGENT     The calling agent: claude-code, codex, gemini, cursor, copilot,
                  qwen-code or opencode; default: detected from the event.
  --store FILE    File of sessions; default:
                  agent-eval/steering.sqlite3 in $XDG_STATE_HOME or
                  ~/.local/state.
  --config FILE   YAML file with a section `session`; default:
                  agent-eval-steering.yaml, if it exists.
  --enable-pytest-full-suite-steering / --disable-pytest-full-suite-steering
                  Block full-suite runs once in each session; default: off.
                  [PYTEST_FULL_SUITE_STEERING_ENABLED]
"""


@steer.command(
    epilog=HOOK_OPTIONS,
    options_metavar="[OPTIONS]",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="")
def hook(words: tuple[str, ...]) -> int:
    """Answer one hook event of a coding agent on standard input.

    Always exits with 0: on any error the call is allowed, and stderr has the reason.
    """
    from ci_agent_eval.steering.hook.command import main

    return main(words)


def _add_location_options(command: Any) -> Any:
    options = (
        click.option(
            "--for",
            "agent",
            type=click.Choice(list(AGENTS)),
            required=True,
            help="Agent to configure.",
        ),
        click.option(
            "--project/--user",
            "project",
            default=True,
            show_default=True,
            help="Settings of the project in the current folder, or your user settings.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _find_settings(agent: str, *, project: bool) -> tuple[Agent, Path]:
    settings = AGENTS[agent]
    root = Path.cwd() if project else None
    return settings, settings.get_path(root, os.environ, Path.home())


@steer.command("install")
@_add_location_options
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="YAML configuration file of the hook; default: none.",
)
def install_into_settings(agent: str, config: Path | None, *, project: bool) -> int:
    """Add the hook to a coding agent's settings; everything else stays.

    A project without agent-eval-steering.yaml gets one, unless --config names another file.
    """
    from ci_agent_eval.steering.hook.install import (
        build_hook_command,
        create_settings,
        find_program,
        install_hook,
    )

    require_packages("steering", "steering", "tree_sitter", "tree_sitter_bash")
    settings, path = _find_settings(agent, project=project)
    options = {} if config is None else {"config": str(config.resolve())}
    changed = install_hook(settings, path, build_hook_command(find_program(), agent, options))
    click.echo(f"{path}: hook {'added' if changed else 'already installed'}")
    if project and config is None and (created := create_settings(Path.cwd())):
        click.echo(f"{created}: new settings of steering")
    if settings.next_step:
        click.echo(f"{settings.next_step}.")
    click.echo(f"To check the hook: agent-eval steer doctor --for {agent}")
    return 0


@steer.command("uninstall")
@_add_location_options
def uninstall_from_settings(agent: str, *, project: bool) -> int:
    """Remove the hook, and nothing else, from a coding agent's settings."""
    from ci_agent_eval.steering.hook.install import uninstall_hook

    settings, path = _find_settings(agent, project=project)
    changed = uninstall_hook(settings, path)
    click.echo(f"{path}: {'hook removed' if changed else 'no agent-eval hook found'}")
    return 0


DOCTOR_EXIT_CODES = """\b
Exit codes of the doctor:
  0    each hook holds a full run
  1    an agent would run the whole suite
  2    usage, configuration or input error
"""


@steer.command("doctor", epilog=DOCTOR_EXIT_CODES)
@click.option(
    "--for",
    "agent",
    type=click.Choice(list(AGENTS)),
    help="Agent to check; default: all with the hook in their settings.",
)
def check_hooks(agent: str | None) -> int:
    """Check that the hook in the settings of coding agents holds a full run.

    It looks for the hook, its program and switches of hooks, and sends the hook a call of
    `pytest -q`. It starts no agent.
    """
    from ci_agent_eval.steering.doctor import find_agents_with_hook, find_problem

    names = [agent] if agent else find_agents_with_hook()
    if not names:
        raise InputError("no settings contain the hook; run `agent-eval steer install --for …`")
    problems = {name: find_problem(name) for name in names}
    for name, problem in problems.items():
        next_step = AGENTS[name].next_step
        held = f"the hook holds a full run{f'. {next_step}' if next_step else ''}"
        click.echo(f"{name}: {problem or held}")
    return int(any(problems.values()))


@steer.command("stats")
@click.option(
    "--store",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File of sessions; default: the hook's.",
)
@add_format_option("text", "json")
def show_stats(store: Path | None, format_: str) -> int:
    """Print how many full runs the hook held back, and what followed."""
    from ci_agent_eval.steering.locations import get_default_store_path
    from ci_agent_eval.steering.steer_stats import (
        render_stats_json,
        render_stats_text,
        summarize_calls,
    )
    from ci_agent_eval.steering.store import SteeringStore

    path = store or Path(get_default_store_path(os.environ, str(Path.home())))
    stats = summarize_calls(SteeringStore(path).load_calls())
    render = render_stats_json if format_ == "json" else render_stats_text
    click.echo(render(stats), nl=False)
    return 0
