"""Memory of the commands that each session was warned about, with expiry and limits. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

DEFAULT_TTL = 1800.0
"""Seconds after its last use until a session expires."""

MAX_SESSIONS = 1024
"""Maximum number of sessions; the least recently used one is dropped first."""

MAX_COMMANDS = 1024
"""Maximum number of commands per session; the oldest one is dropped first."""


class WarnedCommands(Protocol):
    """The memory of a session's commands."""

    def record_command(self, session: str, command: str, now: float) -> bool:
        """Record a session's command; return whether it is the first time.

        Of concurrent calls exactly one gets True. `now` is in seconds, of a clock shared by all
        users of the memory.
        """


def hash_text(text: str) -> str:
    """Return a hash of a session's name or a command, which may contain secrets."""
    # Loads OpenSSL, which a hook does not need for most commands.
    from hashlib import sha256  # noqa: PLC0415 - as said

    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_expired(used: float, now: float, ttl: float) -> bool:
    """Return whether a session has expired, also if the clock was set back."""
    return abs(now - used) > ttl


class InMemoryWarnedCommands:
    """A thread-safe memory in this process."""

    def __init__(self, ttl: float = DEFAULT_TTL, max_sessions: int = MAX_SESSIONS) -> None:
        self._ttl = ttl
        self._max_sessions = max_sessions
        # Both dicts are ordered by last use, oldest first.
        self._sessions: dict[str, tuple[float, dict[str, None]]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        """Return the number of remembered sessions."""
        return len(self._sessions)

    def record_command(self, session: str, command: str, now: float) -> bool:
        """Record a session's command; return whether it is the first time."""
        command_hash = hash_text(command)
        with self._lock:
            self._prune(now)
            commands = self._take_commands(hash_text(session), now)
            is_first = command_hash not in commands
            commands[command_hash] = None
            _drop_oldest(commands, MAX_COMMANDS)
            self._sessions[hash_text(session)] = (now, commands)
            _drop_oldest(self._sessions, self._max_sessions)
        return is_first

    def _take_commands(self, name: str, now: float) -> dict[str, None]:
        """Remove and return a session's commands; empty if it is unknown or expired."""
        used, commands = self._sessions.pop(name, (now, {}))
        return {} if is_expired(used, now, self._ttl) else commands

    def _prune(self, now: float) -> None:
        for name, (used, _) in list(self._sessions.items()):
            if not is_expired(used, now, self._ttl):
                # Later entries were used later, unless the clock was set back.
                break
            del self._sessions[name]


def _drop_oldest(entries: dict[str, Any], maximum: int) -> None:
    while len(entries) > maximum:
        del entries[next(iter(entries))]


@dataclass
class AnswerWarnedCommands:
    """Warned commands that count as known only after the response with the warning.

    A model may request the same call twice in one response, before it reads the warning.
    """

    memory: WarnedCommands
    answer: object = None
    _fresh: set[str] = field(default_factory=set)

    def set_answer(self, answer: object) -> None:
        """Set the response that requests the current calls."""
        if answer != self.answer:
            self.answer = answer
            self._fresh.clear()

    def record_command(self, session: str, command: str, now: float) -> bool:
        """As `WarnedCommands`; True also for a repetition in the same response."""
        if self.memory.record_command(session, command, now):
            self._fresh.add(command)
        return command in self._fresh
