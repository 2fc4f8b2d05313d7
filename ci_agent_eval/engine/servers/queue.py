"""Who holds which server that one episode may use at a time, and who waits for which.

An episode keeps its servers until it ends, and a later run of it may ask for more. So two
episodes could wait for each other for ever: the one that would be the second to is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ci_agent_eval.engine.servers.shared_server import SharedServer
from ci_agent_eval.errors import InputError


@dataclass
class ServerQueue:
    """The holders and those who wait, of every such server of a pool."""

    _holders: dict[SharedServer, str] = field(default_factory=dict)
    _waiting: list[tuple[str, SharedServer]] = field(default_factory=list)
    """In the order in which they came, which is that of their turns."""

    @asynccontextmanager
    async def turn(self, server: SharedServer, episode_id: str) -> AsyncIterator[None]:
        """Wait until no other episode has the server, and hold it.

        Raises InputError where its holder, in the end, waits for this very episode.
        """
        self._check(server, episode_id)
        place = (episode_id, server)
        self._waiting.append(place)
        try:
            await server.alone.acquire()
        finally:
            self._waiting.remove(place)
        self._holders[server] = episode_id
        try:
            yield
        finally:
            del self._holders[server]
            server.alone.release()

    def _check(self, server: SharedServer, episode_id: str) -> None:
        chain = self._chain(server, episode_id)
        if chain is None:
            return
        held = sorted(s.server.label for s, holder in self._holders.items() if holder == episode_id)
        raise InputError(
            f"episode {episode_id}: it holds {', '.join(held)} and asks for "
            f"{server.server.label}, which {chain} has or is to have next, who waits for this "
            "episode: neither could ever go on. Give the first run of each an agent with all "
            'servers of isolation "reset" that the episode needs, so that it takes them in one '
            "order with the others"
        )

    def _chain(self, server: SharedServer, episode_id: str) -> str | None:
        """Return who is before the episode at the server and waits, in the end, for it."""
        for before in self._before(server, len(self._waiting)):
            if before != episode_id and self._waits_for(before, episode_id, {before}):
                return before
        return None

    def _waits_for(self, episode: str, wanted: str, seen: set[str]) -> bool:
        for place, (waiting, server) in enumerate(self._waiting):
            if waiting != episode:
                continue
            for before in self._before(server, place):
                if before == wanted:
                    return True
                if before not in seen:
                    seen.add(before)
                    if self._waits_for(before, wanted, seen):
                        return True
        return False

    def _before(self, server: SharedServer, place: int) -> Iterator[str]:
        """Yield who has to be done with a server before it is the turn of that place."""
        if server in self._holders:
            yield self._holders[server]
        for episode, wanted in self._waiting[:place]:
            if wanted is server:
                yield episode
