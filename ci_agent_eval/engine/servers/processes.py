"""Processes of tool servers: environment, supervisor and the tail of stderr."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from ci_agent_eval.engine.servers import supervisor

PASSED_VARIABLES = ("PATH", "HOME", "LANG")
"""Inherited environment variables, enough to start; the test names all others."""

TAIL_CHARACTERS = 8_192
"""Characters kept from the end of a server's stderr."""

TAIL_LINES = 20
"""Last lines of stderr in a message."""

_READ_BYTES = 65_536


def build_child_environment(environ: Mapping[str, str], named: Mapping[str, str]) -> dict[str, str]:
    """Build the environment of a server from the named and the inherited variables.

    The current virtual environment counts as activated, so that `python` is the interpreter
    of the tests.
    """
    base = {name: environ[name] for name in PASSED_VARIABLES if name in environ}
    path = base.get("PATH", os.defpath)
    if sys.prefix != sys.base_prefix:
        path = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    return {**base, "PATH": path, **named}


def build_supervised_command(
    command: Sequence[str], names: Sequence[str], stdin: Literal["inherit", "null"]
) -> list[str]:
    """Return the command that runs `command` supervised by this process."""
    script = [sys.executable, "-I", "-S", supervisor.__file__]
    return [*script, str(os.getpid()), stdin, ",".join(names), *command]


def find_free_port() -> int:
    """Return an unused port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class StderrTail:
    """The last lines of a process's stderr, which also show the end of the process.

    `stream` is for the process; close it here (`release`) after the start. Then `ended` is set
    at the end of the last process that holds it: the supervisor outlives all others.
    """

    def __init__(self, awaited_pattern: str | None = None) -> None:
        self._reader, writer = os.pipe()
        os.set_blocking(self._reader, False)
        self.stream = os.fdopen(writer, "w")
        self.ended = asyncio.Event()
        self.seen = asyncio.Event()
        self._awaited_pattern = None if awaited_pattern is None else re.compile(awaited_pattern)
        self._text = ""
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reader, self._read)

    def lines(self) -> list[str]:
        """Return the last lines so far."""
        self._read()
        return [line for line in self._text.splitlines() if line.strip()][-TAIL_LINES:]

    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        self._read()
        return self.ended.is_set()

    def release(self) -> None:
        """Close our end of the stream."""
        self.stream.close()

    def close(self) -> None:
        """Stop reading."""
        self.release()
        if self._reader >= 0:
            self._loop.remove_reader(self._reader)
            os.close(self._reader)
            self._reader = -1
            self.ended.set()

    def _read(self) -> None:
        while self._reader >= 0:
            try:
                data = os.read(self._reader, _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self.close()
                return
            self._add_text(data.decode("utf-8", "replace"))

    def _add_text(self, text: str) -> None:
        new_lines = self._text[self._text.rfind("\n") + 1 :] + text
        pattern = self._awaited_pattern
        if pattern is not None and any(map(pattern.search, new_lines.splitlines())):
            self.seen.set()
        self._text = (self._text + text)[-TAIL_CHARACTERS:]
