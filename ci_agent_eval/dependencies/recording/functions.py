"""The functions of the project that run, by `sys.monitoring` (Python 3.12).

Code of other packages is seen once and then never again. A function of the project is counted for
the episode that runs it; after `MAX_HITS` in one episode it counts for all of them and is seen no
more, so that a hot loop costs nothing. Measured in benchmarks/RESULTS.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any, Final

from ci_agent_eval.dependencies.recording.accesses import Accesses, ProcessAccesses
from ci_agent_eval.dependencies.recording.places import Function, Places

MAX_HITS: Final = 1_000
"""Starts and resumptions of a function in one episode that are seen."""

_TOOL_NAME = "ci_agent_eval"
_TOOL_IDS = (4, 3)
"""Ids that no tool of the standard library and no debugger, coverage or profiler has."""

_DISABLE: object = getattr(getattr(sys, "monitoring", None), "DISABLE", None)

FindOwner = Callable[[], Accesses]


class FunctionMonitor:
    """Counts the starts and resumptions of the project's functions."""

    def __init__(self, places: Places, process: ProcessAccesses, find_owner: FindOwner) -> None:
        self._places = places
        self._process = process
        self._find_owner = find_owner
        self._functions: dict[int, Function] = {}
        self._kept: list[CodeType] = []
        self._tool: int | None = None
        self._canary_seen = False

    def start(self) -> bool:
        """Start to watch; return whether this Python can, and a tool id is free."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring is None:
            return False
        free = [one for one in _TOOL_IDS if monitoring.get_tool(one) is None]
        if not free:
            return False
        self._tool = free[0]
        monitoring.use_tool_id(self._tool, _TOOL_NAME)
        events = monitoring.events
        for event in (events.PY_START, events.PY_RESUME):
            monitoring.register_callback(self._tool, event, self._see)
        monitoring.set_events(self._tool, events.PY_START | events.PY_RESUME)
        return True

    def stop(self) -> None:
        """Stop to watch."""
        monitoring = getattr(sys, "monitoring", None)
        if self._tool is None or monitoring is None or not self._owns_tool(monitoring):
            return
        monitoring.set_events(self._tool, 0)
        monitoring.free_tool_id(self._tool)
        self._tool = None

    def is_watching(self) -> bool:
        """Return whether functions are still seen: tested code may have stopped the monitoring."""
        self._canary_seen = False
        _run_canary()
        monitoring = getattr(sys, "monitoring", None)
        return self._canary_seen and monitoring is not None and self._owns_tool(monitoring)

    def _owns_tool(self, monitoring: Any) -> bool:
        return bool(monitoring.get_tool(self._tool) == _TOOL_NAME)

    def _see(self, code: CodeType, _: int) -> object:
        """Count a start or resumption; the monitoring's callback."""
        function = self._functions.get(id(code)) or self._add_code(code)
        if function is None:
            self._canary_seen = self._canary_seen or code is _CANARY
            return None if code is _CANARY else _DISABLE
        owner = self._find_owner()
        if not function[1]:
            owner.has_import = True
            return None
        hits = owner.hits
        count = hits.get(function, 0) + 1
        if count == 1 and (owner.has_import or owner is self._process.shared):
            module = self._places.find_module(sys._getframe(1))  # noqa: SLF001 - the function's
            if module is not None:
                hits = self._process.get_import(module).hits
                count = hits.get(function, 0) + 1
        hits[function] = count
        if count < MAX_HITS:
            return None
        self._process.shared.hits.setdefault(function, 1)
        return _DISABLE

    def _add_code(self, code: CodeType) -> Function | None:
        """Return the project's function of a code object; None for other code."""
        if self._places.find_owner(code.co_filename) == "outside":
            self._process.outside_code.add(code.co_filename)
        function = self._places.find_function(code)
        if function is not None:
            self._kept.append(code)  # its id must not become another object's
            self._functions[id(code)] = function
        return function


def _run_canary() -> None:
    """Run at the end of each episode, to see whether it is seen."""


_CANARY = _run_canary.__code__
