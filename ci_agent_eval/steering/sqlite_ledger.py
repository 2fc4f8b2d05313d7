"""The ledger of test runs, in the SQLite file of the hook. It contains only hashes and times."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ci_agent_eval.steering.policy.call_ledger import CallKind
from ci_agent_eval.steering.policy.model import ToolCallRequest
from ci_agent_eval.steering.policy.warned_commands import hash_text
from ci_agent_eval.steering.sqlite_store import open_store

MAX_CALLS = 10_000
"""Maximum number of calls in the file; the oldest one is dropped first."""


class LedgerCall(NamedTuple):
    """A recorded call; `session` is a hash."""

    session: str
    kind: CallKind
    started: float
    """Unix time in seconds."""
    seconds: float | None
    """Measured duration; None if the agent reported none."""


class SqliteCallLedger:
    """A ledger in a file that processes share."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def record_call(self, session: str, call: ToolCallRequest, kind: CallKind, now: float) -> None:
        """Record a call; a targeted run only after a held one of its session.

        Raises InputError if the file is unusable.
        """
        if kind == "targeted" and not self._path.exists():
            return
        key = hash_text(session)
        with open_store(self._path) as connection:
            if (
                kind == "targeted"
                and not connection.execute(
                    "SELECT 1 FROM calls WHERE session = ? AND kind = 'held' LIMIT 1", (key,)
                ).fetchone()
            ):
                return
            connection.execute(
                "INSERT INTO calls (session, call, kind, started) VALUES (?, ?, ?, ?)",
                (key, _hash_call(call), kind, now),
            )
            connection.execute(
                "DELETE FROM calls WHERE number <= (SELECT max(number) FROM calls) - ?",
                (MAX_CALLS,),
            )

    def record_duration(self, session: str, call: ToolCallRequest, seconds: float) -> None:
        """Record how long the newest equal call of a session ran. Raises InputError."""
        if not self._path.exists():
            return
        with open_store(self._path) as connection:
            connection.execute(
                "UPDATE calls SET seconds = ? WHERE number = (SELECT max(number) FROM calls "
                "WHERE session = ? AND call = ? AND kind != 'held') AND seconds IS NULL",
                (seconds, hash_text(session), _hash_call(call)),
            )

    def load_calls(self) -> list[LedgerCall]:
        """Return all calls, oldest first. Raises InputError if the file is unusable."""
        if not self._path.exists():
            return []
        with open_store(self._path) as connection:
            rows: Iterator[tuple[str, CallKind, float, float | None]] = connection.execute(
                "SELECT session, kind, started, seconds FROM calls ORDER BY number"
            )
            return [LedgerCall(*row) for row in rows]


def _hash_call(call: ToolCallRequest) -> str:
    """Return a hash of a call, the same before and after it ran."""
    try:
        return hash_text(json.dumps([call.tool, call.arguments], sort_keys=True))
    except (TypeError, ValueError, RecursionError):
        return hash_text(call.tool)
