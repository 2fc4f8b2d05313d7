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
from ci_agent_eval.steering.hook.options import HookOptions, parse_hook_options
from ci_agent_eval.steering.locations import find_settings
from ci_agent_eval.steering.policy.mentions import may_run_tests

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import IO, TextIO


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
