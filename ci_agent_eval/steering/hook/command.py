"""`agent-eval steer hook`, implemented without click.

A coding agent waits for this process before each command, and importing click would take a
third of its time. Invalid usage must not exit with 2, as with click: agents block the call on 2.
"""

# ruff: noqa: PLC0415 - modules are imported only for the events that need them

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
from ci_agent_eval.steering.policy.message import Advice, Adviser
from ci_agent_eval.steering.policy.model import Decision, DetectionResult, SuiteCounter

ENABLE = "--enable-pytest-full-suite-steering"
DISABLE = "--disable-pytest-full-suite-steering"
_VALUED = ("--for", "--config", "--store")


@dataclass(frozen=True, slots=True)
class HookOptions:
    """The options of the command; `problem` describes invalid usage."""

    agent: str | None = None
    config: Path | None = None
    store: Path | None = None
    enabled: bool | None = None
    problem: str | None = None


def parse_hook_options(words: Sequence[str]) -> HookOptions:
    """Parse the words after `agent-eval steer hook`. Never raises."""
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
    """Yield options with their values, given as two words or as one with `=`."""
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if equals:
            yield name, value
        else:
            yield name, next(rest, None) if name in _VALUED else None


def main(words: Sequence[str]) -> int:
    """Answer the event on standard input; always return 0."""
    options = parse_hook_options(words)

    def review(request: HookRequest, agent: CodingAgent, event: HookEvent) -> Decision:
        return _review_request(options, os.environ, request, agent, event)

    # The agent may have closed any of the three streams.
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
        # The reader is gone; without this, Python's flush at exit would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _review_request(
    options: HookOptions,
    environ: Mapping[str, str],
    request: HookRequest,
    agent: CodingAgent,
    event: HookEvent,
) -> Decision:
    if options.problem is not None:
        raise InputError(options.problem)
    from ci_agent_eval.steering.hook.request_review import build_reviewer
    from ci_agent_eval.steering.settings_loader import load_steering_settings
    from ci_agent_eval.steering.sqlite_store import get_default_store_path

    root = _find_root(environ)
    settings = load_steering_settings(
        root=root,
        environ=environ,
        enabled=options.enabled,
        config=root / options.config if options.config else None,
    )
    if settings.is_idle:
        raise InputError(f"steering is off; switch it on with {ENABLE}")
    store = options.store or get_default_store_path(environ, Path.home())
    review = build_reviewer(settings, store, time.time, _build_counter, _build_adviser)
    return review(request, agent, event)


def _find_root(environ: Mapping[str, str]) -> Path:
    """Return the project's folder, which may differ from the agent's working directory.

    Claude Code defines the variable (https://code.claude.com/docs/en/hooks); others follow it.
    """
    return Path(environ.get("CLAUDE_PROJECT_DIR") or Path.cwd())


def _build_counter(folder: Path) -> SuiteCounter:
    from ci_agent_eval.steering.suite_collection import build_suite_counter

    return build_suite_counter(folder, os.environ)


def _build_adviser(folder: Path) -> Adviser:
    def advise(run: DetectionResult) -> Advice:
        from ci_agent_eval.steering.affected.advice import find_advice

        return find_advice(folder, os.environ, run)

    return advise
