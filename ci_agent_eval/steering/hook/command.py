"""`agent-eval steer hook`, implemented without click.

A coding agent waits for this process before each command, so the few imports are as light as the
quick answer; importing click would take longer. Invalid usage must not exit with 2, as with
click: agents block the call on 2.
"""

from __future__ import annotations

import os
import sys

from ci_agent_eval.steering.hook.options import parse_hook_options
from ci_agent_eval.steering.hook.quick_answer import find_quick_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO, TextIO


def main(words: Sequence[str]) -> int:
    """Answer the event on standard input; always return 0."""
    options = parse_hook_options(words)
    data = _read_bytes(sys.stdin)
    out, err = find_quick_answer(options, data, os.environ), ""
    if out is None:
        from ci_agent_eval.steering.hook.full_answer import answer_fully  # noqa: PLC0415 - slow

        out, err = answer_fully(options, data, os.environ)
    _write_text(sys.stderr, err)
    _write_text(sys.stdout, out)
    return 0


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
