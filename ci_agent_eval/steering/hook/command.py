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
from ci_agent_eval.steering.hook.agents import Agent, Asked, Event
from ci_agent_eval.steering.hook.run import answer_event
from ci_agent_eval.steering.policy.model import Decision, SuiteCounter

ENABLE = "--enable-pytest-full-suite-steering"
DISABLE = "--disable-pytest-full-suite-steering"
_VALUED = ("--for", "--config", "--store")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command was given; `problem` says what of it is wrong."""

    agent: str | None = None
    config: Path | None = None
    store: Path | None = None
    enabled: bool | None = None
    problem: str | None = None


def options_of(words: Sequence[str]) -> Options:
    """Read the words behind `agent-eval steer hook`. Never raises."""
    values: dict[str, str] = {}
    enabled: bool | None = None
    problem: str | None = None
    for name, value in _pairs(words):
        if name in {ENABLE, DISABLE}:
            enabled = name == ENABLE
        elif name not in _VALUED:
            problem = problem or f"unknown option {name!r}"
        elif not value:
            problem = problem or f"option {name} needs a value"
        else:
            values[name] = value
    config, store = values.get("--config"), values.get("--store")
    return Options(
        agent=values.get("--for"),
        config=Path(config) if config else None,
        store=Path(store) if store else None,
        enabled=enabled,
        problem=problem,
    )


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
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
    options = options_of(words)

    def review(asked: Asked, agent: Agent, event: Event) -> Decision:
        return _review(options, os.environ, asked, agent, event)

    # Whoever starts us may have closed any of the three.
    stdin = sys.stdin.buffer if sys.stdin else BytesIO()
    out, err = answer_event(stdin, options.agent, review)
    _write(sys.stderr, err)
    _write(sys.stdout, out)
    return 0


def _write(stream: IO[str] | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        # Nobody reads on; Python's own flush at the end would make an error of it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _review(
    options: Options, environ: Mapping[str, str], asked: Asked, agent: Agent, event: Event
) -> Decision:
    if options.problem is not None:
        raise InputError(options.problem)
    from ci_agent_eval.steering.file_settings import load_steering
    from ci_agent_eval.steering.hook.review import reviewer
    from ci_agent_eval.steering.store import default_store

    root = _root(environ)
    settings = load_steering(
        root=root,
        environ=environ,
        enabled=options.enabled,
        config=root / options.config if options.config else None,
    )
    if settings.is_idle:
        raise InputError(f"steering is off; switch it on with {ENABLE}")
    store = options.store or default_store(environ, Path.home())
    return reviewer(settings, store, time.time, _counter)(asked, agent, event)


def _root(environ: Mapping[str, str]) -> Path:
    """Return the project's folder: an agent runs its hooks wherever it has gone in the meantime.

    Claude Code names it so (https://code.claude.com/docs/en/hooks), and others do so after it.
    """
    return Path(environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())


def _counter(folder: Path) -> SuiteCounter:
    from ci_agent_eval.steering.collect import suite_counter

    return suite_counter(folder, os.environ)
