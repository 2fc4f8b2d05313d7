"""Which commands a session was warned of: remembered for a while, for so many sessions. Pure."""

from __future__ import annotations

from threading import Lock
from typing import Any, Protocol

DEFAULT_TTL = 1800.0
"""Seconds after its last use for which a session is remembered."""

MAX_SESSIONS = 1024
"""How many sessions are remembered; the one used longest ago goes first."""

MAX_COMMANDS = 1024
"""How many commands of a session are remembered; the oldest goes first."""


class WarnedCommands(Protocol):
    """The memory of a session's commands."""

    def first_time(self, session: str, normal: str, now: float) -> bool:
        """Say whether the session meets this command for the first time, and remember it.

        Of several that ask at once, one is told True. `now` is in seconds, of a clock that
        all users of the memory share.
        """


def hash_text(text: str) -> str:
    """Return what is kept in place of a session's name or a command: they may hold secrets."""
    # It loads OpenSSL, which a hook does not need for most commands.
    from hashlib import sha256  # noqa: PLC0415 - as said

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_expired(used: float, now: float, ttl: float) -> bool:
    """Say whether a session is forgotten, also after the clock was set back by much."""
    return abs(now - used) > ttl


class InMemoryWarnedCommands:
    """Remembers in this process; threads may share it."""

    def __init__(self, ttl: float = DEFAULT_TTL, max_sessions: int = MAX_SESSIONS) -> None:
        self._ttl = ttl
        self._max_sessions = max_sessions
        # Both in the order of their last use, the oldest first: dicts keep it.
        self._sessions: dict[str, tuple[float, dict[str, None]]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """Return how many sessions are remembered."""
        return len(self._sessions)

    def first_time(self, session: str, normal: str, now: float) -> bool:
        """Say whether the session meets this command for the first time, and remember it."""
        command = hash_text(normal)
        with self._lock:
            self._prune(now)
            commands = self._commands_of(hash_text(session), now)
            is_first = command not in commands
            commands[command] = None
            _drop_oldest(commands, MAX_COMMANDS)
            self._sessions[hash_text(session)] = (now, commands)
            _drop_oldest(self._sessions, self._max_sessions)
        return is_first

    def _commands_of(self, name: str, now: float) -> dict[str, None]:
        """Take out a session's commands; none where it is unknown or forgotten."""
        used, commands = self._sessions.pop(name, (now, {}))
        return {} if is_expired(used, now, self._ttl) else commands

    def _prune(self, now: float) -> None:
        for name, (used, _) in list(self._sessions.items()):
            if not is_expired(used, now, self._ttl):
                # Those behind it were used later, unless the clock was set back: see above.
                break
            del self._sessions[name]


def _drop_oldest(entries: dict[str, Any], most: int) -> None:
    while len(entries) > most:
        del entries[next(iter(entries))]
