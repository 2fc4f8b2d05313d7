"""`agent-eval steer hook`, implemented without click.

A coding agent waits for this process before each command. Most of its commands cannot be steered,
and are answered here without parsers, settings or memory, by importing only what json imports.
Invalid usage must not exit with 2, as with click: agents block the call on 2.
"""

from __future__ import annotations

import json
import os
import sys

from ci_agent_eval.steering.hook.agents import AGENTS, recognize_agent
from ci_agent_eval.steering.locations import find_settings
from ci_agent_eval.steering.policy.mentions import may_run_tests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO, TextIO

ENABLE = "--enable-pytest-full-suite-steering"
DISABLE = "--disable-pytest-full-suite-steering"
_VALUED = ("--for", "--config", "--store")


class HookOptions:
    """The options of the command; `problem` describes invalid usage."""

    # A dataclass or named tuple would take a tenth as long to define as Python takes to start.
    def __init__(
        self,
        agent: str | None = None,
        config: str | None = None,
        store: str | None = None,
        enabled: bool | None = None,
        problem: str | None = None,
    ) -> None:
        self.agent = agent
        self.config = config
        self.store = store
        self.enabled = enabled
        self.problem = problem


def main(words: Sequence[str]) -> int:
    """Answer the event on standard input; always return 0."""
    options = parse_hook_options(words)
    data = _read_bytes(sys.stdin)
    out, err = find_quick_answer(options, data, os.environ), ""
    if out is None:
        from ci_agent_eval.steering.hook.answer import answer_fully  # noqa: PLC0415 - slow

        out, err = answer_fully(options, data, os.environ)
    _write_text(sys.stderr, err)
    _write_text(sys.stdout, out)
    return 0


def parse_hook_options(words: Sequence[str]) -> HookOptions:
    """Parse the words after `agent-eval steer hook`. Never raises."""
    options = HookOptions()
    values: dict[str, str] = {}
    for name, value in _split_options(words):
        problem = None
        if name in {ENABLE, DISABLE}:
            options.enabled = name == ENABLE
        elif name not in _VALUED:
            problem = f"unknown option {name!r}"
        elif not value:
            problem = f"option {name} needs a value"
        else:
            values[name] = value
        options.problem = options.problem or problem
    options.agent, options.config, options.store = map(values.get, _VALUED)
    return options


def _split_options(words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Yield options with their values, given as two words or as one with `=`."""
    following = iter(words)
    for word in following:
        name, equals, value = word.partition("=")
        if equals:
            yield name, value
        else:
            yield name, next(following, None) if name in _VALUED else None


def find_quick_answer(options: HookOptions, data: bytes, environ: Mapping[str, str]) -> str | None:
    """Return the text for standard output; None if the event needs the full answer.

    With a settings file every event does.
    """
    try:
        event = json.loads(data)
        agent = AGENTS[options.agent] if options.agent else recognize_agent(event)
        fields = ("tool_input", "toolArgs", "command")
        arguments = [event[name] for name in fields if name in event]
        # A tool's name stands for its program: `run_pytest`.
        names = f"{event.get('tool_name')} {event.get('toolName')}".lower()
        has_settings = os.path.lexists(find_settings(environ, options.config))
        if options.problem or not agent or not arguments or "test" in names or has_settings:
            return None
        may_run = may_run_tests("\n".join(_iterate_texts(arguments)))
    except Exception:  # noqa: BLE001 - the full answer describes the error
        return None
    return None if may_run else agent.allow_output


def _iterate_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _iterate_texts(part)


def _read_bytes(stream: TextIO | None) -> bytes:
    """Return all of a stream; empty if the agent closed it."""
    try:
        return stream.buffer.read() if stream else b""
    except OSError:
        return b""


def _write_text(stream: IO[str] | None, text: str) -> None:
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except OSError:
        # The reader is gone; without this, Python's flush at exit would fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
