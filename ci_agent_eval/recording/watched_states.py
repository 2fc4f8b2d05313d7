"""The states that an episode watches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ci_agent_eval.contract.fields import Texts, validate_value
from ci_agent_eval.contract.jsonable import clean_optional_text
from ci_agent_eval.contract.state import WatchedState
from ci_agent_eval.errors import InputError

if TYPE_CHECKING:
    from ci_agent_eval.state.sources import StateWatch


class WatchedStates:
    """Compares the watched values, folders and databases with their first snapshots."""

    def __init__(self) -> None:
        self._watches: list[StateWatch] = []
        self._returned: tuple[WatchedState, ...] = ()
        self._final: tuple[WatchedState, ...] | None = None

    def add(self, state: object, name: str | None, ignore: str | Sequence[str]) -> None:
        """Take the first snapshot. Raises InputError if that fails, or the name is taken."""
        from ci_agent_eval.state.sources import watch_state  # noqa: PLC0415 - imports SQLite

        ignored = validate_value("episode.watch", "ignore", Texts, ignore)
        watch = watch_state(state, clean_optional_text(name), ignored)
        if any(watch.source.name == known.source.name for known in self._watches):
            raise InputError(
                f"episode.watch: a state {watch.source.name!r} is watched already; give this one "
                "another name"
            )
        self._watches.append(watch)

    def merge(self, returned: Sequence[WatchedState]) -> None:
        """Add the states of a finished episode from elsewhere."""
        self._returned += tuple(returned)

    def compare(self) -> tuple[WatchedState, ...]:
        """Return the changes until now; after the end of the test, those at its end."""
        own = self._final
        if own is None:
            own = tuple(watch.compare() for watch in self._watches)
        return (*own, *self._returned)

    def end(self) -> str | None:
        """Compare for the last time, because fixtures may close a database afterwards.

        Returns why final states are unknown, if they are.
        """
        if self._final is None:
            self._final = self.compare()[: len(self._watches)]
        return "; ".join(list_state_errors(self.compare())) or None


def list_state_errors(states: Sequence[WatchedState]) -> list[str]:
    """Return why final states are unknown."""
    return [state.error for state in states if state.error]
