"""What the run has spent, and a provider's rate limits, for several processes in one file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ci_agent_eval.contract.suite_stop import SuiteStop
from ci_agent_eval.storage.ledger.budget_monitor import Clock
from ci_agent_eval.storage.ledger.file import LedgerFile, hash_parts
from ci_agent_eval.storage.ledger.limits import RunUsage
from ci_agent_eval.storage.ledger.rate_windows import MINUTE_S, WindowEntry, compute_wait_s

if TYPE_CHECKING:
    import sqlite3


class SharedUsageStore:
    """As `ProcessSpending`, for all processes that share the file."""

    def __init__(self, file: LedgerFile) -> None:
        self._file = file

    def put(self, episode_id: str, spent: RunUsage) -> None:
        """Set what an episode has spent so far, in place of what was set before."""
        key = hash_parts(episode_id)
        with self._file.open_transaction() as connection:
            found = connection.execute(
                "SELECT cost_usd, tokens FROM spent WHERE episode = ?", (key,)
            ).fetchone()
            more = spent - (RunUsage() if found is None else RunUsage(*found))
            connection.execute(
                "INSERT OR REPLACE INTO spent VALUES (?, ?, ?)", (key, spent.cost_usd, spent.tokens)
            )
            connection.execute(
                "UPDATE run SET cost_usd = cost_usd + ?, tokens = tokens + ?",
                (more.cost_usd, more.tokens),
            )

    def total(self) -> RunUsage:
        """Return what all episodes have spent."""
        with self._file.reading() as connection:
            return RunUsage(*connection.execute("SELECT cost_usd, tokens FROM run").fetchone())

    def stop(self, cause: SuiteStop) -> SuiteStop:
        """Say that the run is to stop; returns the cause that was there first."""
        with self._file.open_transaction() as connection:
            told = json.dumps(asdict(cause))
            connection.execute("UPDATE run SET stopped = ? WHERE stopped IS NULL", (told,))
            return _read_cause(connection) or cause

    def stopped(self) -> SuiteStop | None:
        """Return why the run is to stop; None while it may go on."""
        with self._file.reading() as connection:
            return _read_cause(connection)


def _read_cause(connection: sqlite3.Connection) -> SuiteStop | None:
    found: str | None = connection.execute("SELECT stopped FROM run").fetchone()[0]
    return None if found is None else SuiteStop(**json.loads(found))


@dataclass
class SharedWindowEntry(WindowEntry):
    """A request that all processes know of."""

    number: int


@dataclass(frozen=True, slots=True)
class _Limits:
    requests: float | None
    tokens: float | None
    paused_until: float

    def admit(self, requests: int, tokens: float) -> bool:
        """Say whether one window holds so much."""
        return requests <= (self.requests or math.inf) and tokens <= (self.tokens or math.inf)


class SharedRateWindows:
    """The windows of one provider and its pause, for all processes that share the file.

    A request that has to wait leaves a place for itself at the time when there will be room, and
    who comes later stands behind it, in whichever process. Nothing but time is needed to get
    past the place of a process that died.
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
        """Let the tighter of these limits and those that any process knows hold."""
        with self._file.open_transaction() as connection:
            connection.execute(
                "INSERT INTO providers (provider, requests, tokens) VALUES (?, ?, ?) "
                "ON CONFLICT DO UPDATE SET "
                "requests = coalesce(min(requests, excluded.requests), requests, "
                "excluded.requests), "
                "tokens = coalesce(min(tokens, excluded.tokens), tokens, excluded.tokens)",
                (self._provider, requests, tokens),
            )
            self._limits(connection)

    def take(self, amount: float) -> WindowEntry | float:
        """Take a request of so many tokens, or return the seconds to wait before asking again."""
        with self._file.reading() as connection:
            limits = self._limits(connection)
        if limits.requests is None and limits.tokens is None:
            now = self._clock()
            return (
                limits.paused_until - now if limits.paused_until > now else WindowEntry(now, amount)
            )
        with self._file.open_transaction() as connection:
            return self._take(connection, amount)

    def correct(self, entry: WindowEntry) -> None:
        """Say how many tokens a request has really used."""
        if isinstance(entry, SharedWindowEntry):
            with self._file.open_transaction() as connection:
                connection.execute(
                    "UPDATE requests SET tokens = ? WHERE id = ?", (entry.amount, entry.number)
                )

    def give_up(self) -> None:
        """Leave the place of a request that no longer waits."""
        place, self._place = self._place, None
        if place is not None:
            with self._file.open_transaction() as connection:
                connection.execute("DELETE FROM requests WHERE id = ?", (place,))

    def pause(self, seconds: float) -> None:
        """Hold every request for a while, in all processes."""
        with self._file.open_transaction() as connection:
            connection.execute(
                "UPDATE providers SET paused_until = max(paused_until, ?) WHERE provider = ?",
                (self._clock() + seconds, self._provider),
            )

    def _limits(self, connection: sqlite3.Connection) -> _Limits:
        """Return the limits that all processes keep: another one may have set them."""
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
        """Return when the request fits behind all that are taken, and all that came before it."""
        limits = self._limits(connection)
        count, used, latest = self._before(connection, "count(*), total(tokens), max(at)")[0]
        start = max(now, limits.paused_until, latest or now)
        if limits.admit(count + 1, used + amount):
            return start
        before = [WindowEntry(*row) for row in self._before(connection, "at, tokens")]
        waits = [0.0]
        if limits.requests is not None:
            ones = [WindowEntry(entry.at, 1) for entry in before]
            waits.append(self._wait_s(ones, limits.requests, start, 1))
        if limits.tokens is not None:
            waits.append(self._wait_s(before, limits.tokens, start, amount))
        return start + max(waits)

    def _before(self, connection: sqlite3.Connection, what: str) -> list[tuple[Any, ...]]:
        """Return figures of the requests that come first, in the order of their time."""
        return connection.execute(
            f"SELECT {what} FROM requests WHERE provider = ? AND id != ? "  # noqa: S608 - our own words
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
        """Put the request into the place that it has, or into a new one behind all others."""
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
