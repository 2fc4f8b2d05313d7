"""A run's usage and a provider's rate limits, shared by several processes in one file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ci_agent_eval.contract.suite_stop import SuiteStop
from ci_agent_eval.storage.ledger.budget_monitor import Clock
from ci_agent_eval.storage.ledger.file import LedgerFile, hash_parts
from ci_agent_eval.storage.ledger.limits import SuiteUsage
from ci_agent_eval.storage.ledger.rate_windows import MINUTE_S, WindowEntry, compute_wait_s

if TYPE_CHECKING:
    import sqlite3


class SharedUsageStore:
    """The usage store of all processes that share the file."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def put(self, episode_id: str, spent: SuiteUsage) -> None:
        """Set an episode's usage so far, replacing the previous value."""
        key = hash_parts(episode_id)
        with self._file.open_transaction() as connection:
            found = connection.execute(
                "SELECT cost_usd, tokens FROM spent WHERE episode = ?", (key,)
            ).fetchone()
            more = spent - (SuiteUsage() if found is None else SuiteUsage(*found))
            connection.execute(
                "INSERT OR REPLACE INTO spent VALUES (?, ?, ?)", (key, spent.cost_usd, spent.tokens)
            )
            connection.execute(
                "UPDATE run SET cost_usd = cost_usd + ?, tokens = tokens + ?",
                (more.cost_usd, more.tokens),
            )

    def total(self) -> SuiteUsage:
        """Return the usage of all episodes."""
        with self._file.open_for_reading() as connection:
            return SuiteUsage(*connection.execute("SELECT cost_usd, tokens FROM run").fetchone())

    def stop(self, cause: SuiteStop) -> SuiteStop:
        """Record that the run must stop; returns the first recorded cause."""
        with self._file.open_transaction() as connection:
            text = json.dumps(asdict(cause))
            connection.execute("UPDATE run SET stopped = ? WHERE stopped IS NULL", (text,))
            return _read_cause(connection) or cause

    def get_stop(self) -> SuiteStop | None:
        """Return why the run must stop; None while it may continue."""
        with self._file.open_for_reading() as connection:
            return _read_cause(connection)


def _read_cause(connection: sqlite3.Connection) -> SuiteStop | None:
    found: str | None = connection.execute("SELECT stopped FROM run").fetchone()[0]
    return None if found is None else SuiteStop(**json.loads(found))


@dataclass
class SharedWindowEntry(WindowEntry):
    """A request in the shared file."""

    number: int


@dataclass(frozen=True, slots=True)
class _Limits:
    requests: float | None
    tokens: float | None
    paused_until: float

    def admit(self, requests: int, tokens: float) -> bool:
        """Say whether one window admits these requests and tokens."""
        return requests <= (self.requests or math.inf) and tokens <= (self.tokens or math.inf)


class SharedRateWindows:
    """The rate windows and the pause of one provider, shared by all processes.

    A waiting request reserves the time at which it will fit; later requests of any process queue
    behind it. The reservation of a process that died expires with time.
    """

    def __init__(
        self, file: LedgerFile, provider: str, clock: Clock, span_s: float = MINUTE_S
    ) -> None:
        self._file = file
        self._provider = hash_parts(provider)
        self._clock = clock
        self._span_s = span_s
        self._place: int | None = None
        self.counts_tokens = False
        """Whether the tokens of requests count, as far as this process knows."""

    def lower_limits(self, requests: int | None, tokens: int | None) -> None:
        """Lower the limits of all processes; a higher limit changes nothing."""
        with self._file.open_transaction() as connection:
            connection.execute(
                "INSERT INTO providers (provider, requests, tokens) VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET "
                "requests = coalesce(min(requests, excluded.requests), requests, "
                "excluded.requests), "
                "tokens = coalesce(min(tokens, excluded.tokens), tokens, excluded.tokens)",
                (self._provider, requests, tokens),
            )
            self._read_limits(connection)

    def take(self, amount: float) -> WindowEntry | float:
        """Take a request of `amount` tokens, or return the seconds to wait before the next try."""
        with self._file.open_for_reading() as connection:
            limits = self._read_limits(connection)
        if limits.requests is None and limits.tokens is None:
            now = self._clock()
            return (
                limits.paused_until - now if limits.paused_until > now else WindowEntry(now, amount)
            )
        with self._file.open_transaction() as connection:
            return self._take(connection, amount)

    def correct(self, entry: WindowEntry) -> None:
        """Correct the number of tokens that a request used."""
        if isinstance(entry, SharedWindowEntry):
            with self._file.open_transaction() as connection:
                connection.execute(
                    "UPDATE requests SET tokens = ? WHERE id = ?", (entry.amount, entry.number)
                )

    def cancel_wait(self) -> None:
        """Remove the reservation of a request that no longer waits."""
        place, self._place = self._place, None
        if place is not None:
            with self._file.open_transaction() as connection:
                connection.execute("DELETE FROM requests WHERE id = ?", (place,))

    def pause(self, seconds: float) -> None:
        """Hold the requests of all processes for some seconds."""
        with self._file.open_transaction() as connection:
            connection.execute(
                "UPDATE providers SET paused_until = max(paused_until, ?) WHERE provider = ?",
                (self._clock() + seconds, self._provider),
            )

    def _read_limits(self, connection: sqlite3.Connection) -> _Limits:
        """Return the limits of all processes, which another process may have changed."""
        found = _Limits(
            *connection.execute(
                "SELECT requests, tokens, paused_until FROM providers WHERE provider = ?",
                (self._provider,),
            ).fetchone()
        )
        self.counts_tokens = found.tokens is not None
        return found

    def _take(self, connection: sqlite3.Connection, amount: float) -> WindowEntry | float:
        now = self._clock()
        connection.execute(
            "DELETE FROM requests WHERE provider = ? AND at <= ?",
            (self._provider, now - self._span_s),
        )
        at = self._find_earliest(connection, now, amount)
        number = self._put(connection, at, amount, is_taken=at <= now)
        self._place = number if at > now else None
        return at - now if at > now else SharedWindowEntry(at, amount, number)

    def _find_earliest(self, connection: sqlite3.Connection, now: float, amount: float) -> float:
        """Return the earliest time at which the request fits behind all earlier ones."""
        limits = self._read_limits(connection)
        count, used, latest = self._select_before(connection, "count(*), total(tokens), max(at)")[0]
        start = max(now, limits.paused_until, latest or now)
        if limits.admit(count + 1, used + amount):
            return start
        before = [WindowEntry(*row) for row in self._select_before(connection, "at, tokens")]
        waits = [0.0]
        if limits.requests is not None:
            ones = [WindowEntry(entry.at, 1) for entry in before]
            waits.append(self._wait_s(ones, limits.requests, start, 1))
        if limits.tokens is not None:
            waits.append(self._wait_s(before, limits.tokens, start, amount))
        return start + max(waits)

    def _select_before(self, connection: sqlite3.Connection, columns: str) -> list[tuple[Any, ...]]:
        """Select columns of all earlier requests, ordered by time."""
        return connection.execute(
            f"SELECT {columns} FROM requests WHERE provider = ? AND id != ? "  # noqa: S608 - our own words
            "AND (is_taken OR id < ?) ORDER BY at, id",
            (self._provider, self._place or 0, self._place or 2**62),
        ).fetchall()

    def _wait_s(
        self, entries: Sequence[WindowEntry], limit: float, now: float, amount: float
    ) -> float:
        left = [entry for entry in entries if entry.at + self._span_s > now]
        return compute_wait_s(left, limit, self._span_s, now, amount)

    def _put(
        self, connection: sqlite3.Connection, at: float, amount: float, *, is_taken: bool
    ) -> int:
        """Write the request to its reservation, or append it."""
        values = (self._provider, at, amount, is_taken)
        if self._place is not None:
            found = connection.execute(
                "INSERT OR REPLACE INTO requests VALUES (?, ?, ?, ?, ?)", (self._place, *values)
            )
        else:
            found = connection.execute(
                "INSERT INTO requests (provider, at, tokens, is_taken) VALUES (?, ?, ?, ?)", values
            )
        return int(found.lastrowid or 0)
