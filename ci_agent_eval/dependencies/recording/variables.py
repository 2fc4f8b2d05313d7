"""Environment variables that a process reads, by wrapped methods of the type of `os.environ`.

`os.getenv`, `in`, `os.path.expandvars` and `os.environb` all end in `__getitem__`; `dict()` and
`pydantic-settings` read all names by `__iter__`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ci_agent_eval.dependencies.recording.accesses import ProcessAccesses
from ci_agent_eval.dependencies.recording.functions import FindOwner
from ci_agent_eval.dependencies.recording.places import Places

VOLATILE_PREFIXES = ("GITHUB_", "RUNNER_", "ACTIONS_", "AGENT_EVAL_", "INPUT_", "PYTEST_", "SSH_")
VOLATILE_NAMES = frozenset(
    {"_", "SHLVL", "PWD", "OLDPWD", "HOSTNAME", "INVOCATION_ID", "JOURNAL_STREAM", "COLUMNS"}
    | {"LINES", "TERM", "COLORTERM", "STATE", "TMUX", "TMUX_PANE", "TERM_SESSION_ID"}
    | {"SYSTEMD_EXEC_PID", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE"}
)
"""Names that differ from run to run; they count only for code that reads them by name."""

_AnyMethod = Callable[..., Any]


class VariableWatch:
    """Adds the variables that are read to the episode that reads them."""

    def __init__(
        self,
        places: Places,
        process: ProcessAccesses,
        find_owner: FindOwner,
        initial: Mapping[str, str],
    ) -> None:
        self._places = places
        self._process = process
        self._find_owner = find_owner
        self._initial = initial
        self._type: Any = type(os.environ)
        self._getitem: _AnyMethod = self._type.__getitem__
        self._iter: _AnyMethod = self._type.__iter__

    def start(self) -> None:
        """Start to watch."""
        getitem, iterate = self._getitem, self._iter

        def get_item(environ: Any, key: Any) -> Any:
            self._add_name(key, sys._getframe(1))  # noqa: SLF001 - the caller
            return getitem(environ, key)

        def iterate_names(environ: Any) -> Iterator[Any]:
            self._add_all(sys._getframe(1))  # noqa: SLF001 - the caller
            return iter(iterate(environ))

        self._type.__getitem__, self._type.__iter__ = get_item, iterate_names

    def stop(self) -> None:
        """Stop to watch, and restore the methods."""
        self._type.__getitem__, self._type.__iter__ = self._getitem, self._iter

    def _add_name(self, key: Any, frame: Any) -> None:
        with suppress(Exception):  # an error here would fail the tested code's access
            access = ("variable", os.fsdecode(key))
            owner = self._find_owner()
            if access not in owner.accesses:
                self._add([access[1]], frame)

    def _add_all(self, frame: Any) -> None:
        with suppress(Exception):  # as above
            names = (name for name in self._initial if not _is_volatile(name))
            self._add(sorted(names), frame)

    def _add(self, names: list[str], frame: Any) -> None:
        accessor = self._places.find_accessor(frame)
        if accessor.is_housekeeping:
            return
        owner = self._find_owner()
        for name in names:
            self._process.add(owner, ("variable", name), accessor)


def _is_volatile(name: str) -> bool:
    return name in VOLATILE_NAMES or name.startswith(VOLATILE_PREFIXES)
