"""`agent-eval steer …`: keep agents from running a whole pytest suite by accident.

The hook is a process for each command of a coding agent: each command imports what it needs.
"""

# ruff: noqa: PLC0415 - as said above

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ci_agent_eval.app.cli.steer_options import config_option, require_packages
from ci_agent_eval.app.cli.steer_proxy import proxy
from ci_agent_eval.errors import InputError

if TYPE_CHECKING:
    from ci_agent_eval.steering.policy.model import Rules
    from ci_agent_eval.steering.policy.settings import SteeringSettings

CHECK_EXIT_CODES = """\b
Exit codes of a check of one command:
  0    no full-suite run
  1    a full-suite run, which would be held back
  2    usage, configuration or input error
With --jsonl: 0 when all lines were answered, whatever the answers, and 2 as above.
"""


@click.group()
def steer() -> None:
    """Keep agents from running a whole pytest suite by accident."""


steer.add_command(proxy)


def _load_settings(config: Path | None) -> SteeringSettings:
    from ci_agent_eval.steering.settings_loader import load_steering_settings

    return load_steering_settings(root=Path.cwd(), environ=os.environ, config=config)


def _load_rules(config: Path | None) -> Rules:
    from dataclasses import replace

    from ci_agent_eval.steering.suite_collection import build_suite_counter

    rules = _load_settings(config).rules
    if rules.max_collected is None:
        return rules
    return replace(rules, count=build_suite_counter(Path.cwd(), os.environ))


@steer.command(epilog=CHECK_EXIT_CODES)
@click.argument("command", required=False)
@click.option(
    "--shell",
    type=click.Choice(["bash", "powershell", "cmd"]),
    default="bash",
    show_default=True,
    help="Whose language COMMAND is in.",
)
@click.option("--jsonl", is_flag=True, help="Answer tool calls from standard input, by the line.")
@config_option
def check(command: str | None, shell: Any, config: Path | None, *, jsonl: bool) -> int:
    """Say whether COMMAND would run a whole pytest suite, and why.

    \b
    agent-eval steer check 'cd app && pytest -q | tail'
    printf '%s\\n' '{"tool": "bash", "arguments": "pytest"}' | agent-eval steer check --jsonl

    With --jsonl each line {"tool": …, "arguments": …} is answered at once, in order and without
    memory, with {"pytest": …, "full_suite": …, "command": …, "reason": …}, or with {"error": …}
    where it cannot be read.
    """  # noqa: D301 - \b is click's mark for a paragraph that is not rewrapped
    if jsonl is (command is not None):
        raise InputError("steer check: give either COMMAND or --jsonl")
    rules = _load_rules(config)
    require_packages("steering", "steering", "tree_sitter", "tree_sitter_bash")
    if command is None:
        return _answer_lines(rules)
    from ci_agent_eval.steering.policy.detection import detect_in_text
    from ci_agent_eval.steering.steer_check import render_detection

    finding = detect_in_text(command, shell=shell, rules=rules)
    click.echo(render_detection(finding), nl=False)
    return 1 if finding.full_suite else 0


def _answer_lines(rules: Rules) -> int:
    from ci_agent_eval.steering.steer_check import answer_lines

    try:
        for answer in answer_lines(sys.stdin.buffer, rules):
            sys.stdout.write(answer)
            sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads on. Python's own flush at the end would complain once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


HOOK_OPTIONS = """\b
Options of the hook:
  --for AGENT     The agent that asks: claude-code, codex, gemini, cursor or
                  copilot; default: recognised from the event.
  --store FILE    File that remembers sessions; default:
                  agent-eval/steering.sqlite3 in $XDG_STATE_HOME or
                  ~/.local/state.
  --config FILE   YAML file with a section `session`; default:
                  agent-eval-steering.yaml, if it is there.
  --enable-pytest-full-suite-steering / --disable-pytest-full-suite-steering
                  Hold full-suite runs back once in each session, or do not;
                  default: off. [PYTEST_FULL_SUITE_STEERING_ENABLED]
"""


@steer.command(
    epilog=HOOK_OPTIONS,
    options_metavar="[OPTIONS]",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="")
def hook(words: tuple[str, ...]) -> int:
    """Answer one hook event of a coding agent on standard input.

    Ends with 0 always: if anything goes wrong, the call goes through, and stderr says why.
    """
    from ci_agent_eval.steering.hook.command import main

    return main(words)


_where_options = (
    click.option(
        "--for",
        "agent",
        type=click.Choice(["claude-code"]),
        required=True,
        help="The agent whose settings are changed.",
    ),
    click.option(
        "--project/--user",
        "project",
        default=True,
        show_default=True,
        help="The settings that this project shares, or your own.",
    ),
)


def _add_location_options(command: Any) -> Any:
    for option in reversed(_where_options):
        command = option(command)
    return command


def _settings_file(project: bool, environ: Mapping[str, str]) -> Path:
    from ci_agent_eval.steering.hook.install import (
        get_project_settings_path,
        get_user_settings_path,
    )

    return (
        get_project_settings_path(Path.cwd())
        if project
        else get_user_settings_path(environ, Path.home())
    )


@steer.command()
@_add_location_options
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="YAML file that the hook reads; default: none is named.",
)
def install(agent: str, config: Path | None, *, project: bool) -> int:  # noqa: ARG001 - one so far
    """Put the hook into a coding agent's settings, beside all that is there."""
    from ci_agent_eval.steering.hook.install import build_hook_command
    from ci_agent_eval.steering.hook.install import install_hook as put_in

    path = _settings_file(project, os.environ)
    # The settings of a project travel to other machines, where our own path means nothing.
    program = "agent-eval" if project else _own_program()
    options = {} if config is None else {"config": str(config if project else config.resolve())}
    changed = put_in(path, build_hook_command(program, options))
    click.echo(f"{path}: {'the hook is in it now' if changed else 'the hook is in it already'}")
    return 0


@steer.command()
@_add_location_options
def uninstall(agent: str, *, project: bool) -> int:  # noqa: ARG001 - one so far
    """Take the hook out of a coding agent's settings, and nothing else."""
    from ci_agent_eval.steering.hook.install import uninstall_hook as take_out

    path = _settings_file(project, os.environ)
    changed = take_out(path)
    click.echo(f"{path}: {'the hook is out of it' if changed else 'there was no hook of ours'}")
    return 0


def _own_program() -> str:
    beside = Path(sys.executable).with_name("agent-eval")
    return str(beside) if beside.exists() else "agent-eval"
