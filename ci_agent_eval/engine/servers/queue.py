"""The queue for exclusive servers, which one episode may use at a time.

An episode keeps its servers until it ends, and a later run of it may request more. Two
episodes could then wait for each other: the second one is refused.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ci_agent_eval.engine.servers.shared_server import SharedServer
from ci_agent_eval.errors import InputError


@dataclass
class ServerQueue:
    """Holders and waiting episodes of all exclusive servers of a pool."""

    _holders: dict[SharedServer, str] = field(default_factory=dict)
    _waiting: list[tuple[str, SharedServer]] = field(default_factory=list)
    """In order of arrival, which is the order of service."""

    @asynccontextmanager
    async def hold(self, server: SharedServer, episode_id: str) -> AsyncIterator[None]:
        """Wait until no other episode holds the server, and hold it.

        Raises InputError if its holder waits, directly or not, for this episode.
        """
        self._refuse_deadlock(server, episode_id)
        position = (episode_id, server)
        self._waiting.append(position)
        try:
            await server.lock.acquire()
        finally:
            self._waiting.remove(position)
        self._holders[server] = episode_id
        try:
            yield
        finally:
            del self._holders[server]
            server.lock.release()

    def _refuse_deadlock(self, server: SharedServer, episode_id: str) -> None:
        blocking_episode = self._find_deadlock(server, episode_id)
        if blocking_episode is None:
            return
        wanted = server.server.label
        held = sorted(s.server.label for s, holder in self._holders.items() if holder == episode_id)
        raise InputError(
            f"episode {episode_id}: it holds {', '.join(held)} and asks for {wanted}, which "
            f"{blocking_episode} has or is to have next, who waits for this episode: neither "
            "could ever go on. Give the first run of each an agent with all "
            'servers of isolation "reset" that the episode needs, so that it takes them in one '
            "order with the others"
        )

    def _find_deadlock(self, server: SharedServer, episode_id: str) -> str | None:
        """Return an earlier episode at the server that waits for this one, directly or not."""
        for before in self._iterate_predecessors(server, len(self._waiting)):
            if before != episode_id and self._waits_for(before, episode_id, {before}):
                return before
        return None

    def _waits_for(self, episode: str, wanted: str, seen: set[str]) -> bool:
        for position, (waiting, server) in enumerate(self._waiting):
            if waiting != episode:
                continue
            for before in self._iterate_predecessors(server, position):
                if before == wanted:
                    return True
                if before not in seen:
                    seen.add(before)
                    if self._waits_for(before, wanted, seen):
                        return True
        return False

    def _iterate_predecessors(self, server: SharedServer, position: int) -> Iterator[str]:
        """Yield the episodes that use the server before this position of the queue."""
        if server in self._holders:
            yield self._holders[server]
        for episode, wanted in self._waiting[:position]:
            if wanted is server:
                yield episode
