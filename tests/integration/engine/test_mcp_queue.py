"""Episodes that hold a server of their turn and ask for another one in a later run."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Sequence
from typing import Self

from ci_agent_eval.engine.declarations import Agent, MCPServer, Provider
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.errors import InputError
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


async def play(
    episode: Episode, runs: Sequence[Sequence[MCPServer]], first_runs_made: asyncio.Barrier
) -> str:
    """Play an episode, whose later runs begin when all others have made their first one."""
    async with episode:
        await episode.run(*runs[0])
        await first_runs_made.wait()
        try:
            for servers in runs[1:]:
                await episode.run(*servers)
        except InputError as error:
            return str(error)
        return "done"


def ends_of(*, meet: bool = True, **plans: Sequence[Sequence[MCPServer]]) -> dict[str, str]:
    """Play episodes at once; return how each ended."""

    async def main() -> list[str]:
        async with EngineSession(os.environ, time.monotonic) as session:
            barrier = asyncio.Barrier(len(plans) if meet else 1)
            async with asyncio.timeout(ENOUGH_S):
                return await asyncio.gather(
                    *(play(Episode(session, model, n), plans[n], barrier) for n in plans)
                )

    with ModelServer(["done"]) as model:
        return dict(zip(plans, asyncio.run(main()), strict=True))


def test_of_two_that_would_wait_for_each_other_one_is_refused_and_the_other_goes_on():
    ends = ends_of(a=[[ONE], [TWO]], b=[[TWO], [ONE]])
    refused = [name for name, end in ends.items() if end != "done"]
    assert len(refused) == 1, ends
    assert re.match(
        rf"episode {refused[0]}: it holds (one|two) and asks for (one|two), which [ab] has, who "
        "waits for this episode: neither could ever go on. Give the first run",
        ends[refused[0]],
    )


def test_of_three_in_a_ring_one_is_refused():
    ends = ends_of(a=[[ONE], [TWO]], b=[[TWO], [THREE]], c=[[THREE], [ONE]])
    assert sorted(end == "done" for end in ends.values()) == [False, True, True], ends


def test_who_asks_for_all_at_once_is_never_refused():
    orders = [[[ONE, TWO], [TWO], [ONE]], [[TWO, ONE], [ONE]]] * 3
    ends = ends_of(meet=False, **{f"e{number}": runs for number, runs in enumerate(orders)})
    assert set(ends.values()) == {"done"}


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
