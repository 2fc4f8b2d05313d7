"""Tracebacks without our own frames; of an error in which only our code ran, only its message.

A test that returned no episode has already returned; its traceback holds only pytest's frames and
ours.
"""

from __future__ import annotations

import sys
from types import TracebackType

import pytest

from ci_agent_eval.errors import AgentEvalError

_OWN = frozenset({"ci_agent_eval", "asyncio"})
_PYTEST = frozenset({"_pytest", "pluggy"})


def hide_own_frames() -> None:
    """Leave our modules out of the tracebacks that pytest shows (--full-trace shows them)."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "ci_agent_eval":
            vars(module).setdefault("__tracebackhide__", True)


def hide_own_traceback(
    item: pytest.Item, call: pytest.CallInfo[None], report: pytest.TestReport
) -> None:
    """Remove the traceback of a failed report if it contains no user code, and any hint at it."""
    if call.excinfo is None or not report.failed:
        return
    if isinstance(call.excinfo.value, AgentEvalError) and _is_ours(call.excinfo.tb, str(item.path)):
        report.longrepr = call.excinfo.getrepr(style="value")
    for traceback, *_ in getattr(report.longrepr, "chain", ()):
        # Other plugins, as pytest-check, put other objects than pytest's into this chain.
        entries = getattr(traceback, "reprentries", ())
        if entries and all(entry.style == "value" for entry in entries):
            traceback.extraline = (
                None  # pytest's hint at frames, of which only the message is shown
            )


def _is_ours(traceback: TracebackType, test_file: str) -> bool:
    """Return whether only our own code ran below pytest's, and no code of the test's file."""
    below: set[str] = set()
    current: TracebackType | None = traceback
    while current is not None:
        frame, current = current.tb_frame, current.tb_next
        if frame.f_code.co_filename == test_file:
            return False
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        below = set() if package in _PYTEST else {*below, package}
    return below <= _OWN
