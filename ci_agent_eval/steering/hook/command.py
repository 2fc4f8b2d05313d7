"""`agent-eval steer hook`, without the library that reads all other commands.

A coding agent waits for this process at each of its commands, and loading that library would be
a third of its time. Nor may wrong usage end with 2 here, as it does there: to an agent that
means that the call is to be blocked.
"""

# ruff: noqa: PLC0415 - what is needed only for some events is loaded only for them

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

from ci_agent_eval.errors import InputError
from ci_agent_eval.steering.hook.coding_agents import CodingAgent, HookEvent, HookRequest
from ci_agent_eval.steering.hook.event_answer import answer_event
from ci_agent_eval.steering.policy.model import Decision, SuiteCounter

ENABLE = "--enable-pytest-full-suite-steering"
DISABLE = "--disable-pytest-full-suite-steering"
_VALUED = ("--for", "--config", "--store")


@dataclass(frozen=True, slots=True)
class HookOptions:
    """What the command was given; `problem` says what of it is wrong."""

    agent: str | None = None
    config: Path | None = None
    store: Path | None = None
    enabled: bool | None = None
    problem: str | None = None


def parse_hook_options(words: Sequence[str]) -> HookOptions:
    """Read the words behind `agent-eval steer hook`. Never raises."""
    values: dict[str, str] = {}
    enabled: bool | None = None
    problem: str | None = None
    for name, value in _split_options(words):
        if name in {ENABLE, DISABLE}:
            enabled = name == ENABLE
        elif name not in _VALUED:
            problem = problem or f"unknown option {name!r}"
        elif not value:
            problem = problem or f"option {name} needs a value"
        else:
            values[name] = value
    config, store = values.get("--config"), values.get("--store")
    return HookOptions(
        agent=values.get("--for"),
        config=Path(config) if config else None,
        store=Path(store) if store else None,
        enabled=enabled,
        problem=problem,
    )


def _split_options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield options with their values, written as two words or with `=` as one."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if equals:
            yield name, value
        else:
            yield name, next(rest, None) if name in _VALUED else None


def main(words: Sequence[str]) -> int:
    """Answer the event on standard input; return 0, whatever happens."""
    options = parse_hook_options(words)

    def review(asked: HookRequest, agent: CodingAgent, event: HookEvent) -> Decision:
        return _review_request(options, os.environ, asked, agent, event)

    # Whoever starts us may have closed any of the three.
    stdin = sys.stdin.buffer if sys.stdin else BytesIO()
    out, err = answer_event(stdin, options.agent, review)
    _write_text(sys.stderr, err)
    _write_text(sys.stdout, out)
    return 0


def _write_text(stream: IO[str] | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        # Nobody reads on; Python's own flush at the end would make an error of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _review_request(
    options: HookOptions,
    environ: Mapping[str, str],
    asked: HookRequest,
    agent: CodingAgent,
    event: HookEvent,
) -> Decision:
    if options.problem is not None:
        raise InputError(options.problem)
    from ci_agent_eval.steering.hook.review import build_reviewer
    from ci_agent_eval.steering.settings_loader import load_steering_settings
    from ci_agent_eval.steering.sqlite_store import get_default_store

    root = _find_root(environ)
    settings = load_steering_settings(
        root=root,
        environ=environ,
        enabled=options.enabled,
        config=root / options.config if options.config else None,
    )
    if settings.is_idle:
        raise InputError(f"steering is off; switch it on with {ENABLE}")
    store = options.store or get_default_store(environ, Path.home())
    return build_reviewer(settings, store, time.time, _build_counter)(asked, agent, event)


def _find_root(environ: Mapping[str, str]) -> Path:
    """Return the project's folder: an agent runs its hooks wherever it has gone in the meantime.

    Claude Code names it so (https://code.claude.com/docs/en/hooks), and others do so after it.
    """
    return Path(environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())


def _build_counter(folder: Path) -> SuiteCounter:
    from ci_agent_eval.steering.suite_collection import build_suite_counter

    return build_suite_counter(folder, os.environ)
