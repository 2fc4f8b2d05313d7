"""Episodes with servers of isolation `reset`: they take turns, and none waits for ever."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from typing import Self

from ci_agent_eval.engine.declarations import Agent, MCPServer, Provider
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.session import EngineSession
from tests.model_server import ModelServer
from tests.servers.rig import ENOUGH_S, a_bank, a_rogue
from tests.tables import each_row

ONE, THREE = (
    a_rogue("works", isolation="reset", reset=lambda: None, name=name) for name in ("one", "three")
)
TWO = a_bank(isolation="reset", reset="reset_balances", name="two")


class Episode:
    """An episode of runs, each with an agent of some servers."""

    def __init__(self, session: EngineSession, model: ModelServer, name: str) -> None:
        self.session, self.model, self.name = session, model, name

    async def __aenter__(self) -> Self:
        self.session.begin_episode(self.name)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.end_episode(self.name)

    async def run(self, *servers: MCPServer) -> None:
        provider = Provider("openai:m", base_url=self.model.base_url)
        agent = Agent(provider, mcp_servers=servers)
        result = await aitest_run(agent, "go", session=self.session, episode_id=self.name)
        assert result.final_response == "done", result


async def play(episode: Episode, runs: Sequence[Sequence[MCPServer]]) -> None:
    async with episode:
        for servers in runs:
            await episode.run(*servers)


@each_row(
    "plans",
    [
        [[[ONE], [TWO]], [[TWO], [ONE]]],
        [[[ONE], [TWO]], [[TWO], [THREE]], [[THREE], [ONE]]],
        [[[ONE, TWO], [TWO], [ONE]], [[TWO, ONE], [ONE]]] * 3,
    ],
)
def test_episodes_take_the_servers_of_their_turn_in_any_order(
    plans: Sequence[Sequence[Sequence[MCPServer]]],
) -> None:
    async def main() -> None:
        async with EngineSession(os.environ, time.monotonic) as session, asyncio.timeout(ENOUGH_S):
            await asyncio.gather(
                *(play(Episode(session, model, f"e{n}"), runs) for n, runs in enumerate(plans))
            )

    with ModelServer(["done"]) as model:
        asyncio.run(main())


@each_row("servers", [[ONE], [ONE, TWO]])
def test_two_runs_at_once_of_one_episode_share_its_servers(servers: list[MCPServer]):
    async def main() -> None:
        async with (
            EngineSession(os.environ, time.monotonic) as session,
            Episode(session, model, "a") as episode,
            asyncio.timeout(ENOUGH_S),
        ):
            await asyncio.gather(*(episode.run(*servers) for _ in range(3)))

    with ModelServer(["done"]) as model:
        asyncio.run(main())
