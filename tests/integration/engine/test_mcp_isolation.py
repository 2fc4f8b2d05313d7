"""How episodes share a server: as it is, with a reset between, or one each."""

import asyncio
import os
from typing import Any

import pytest

from ci_agent_eval.engine.declarations import MCPServer
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.pool import ServerPool
from tests.servers.rig import CONTEXT, a_bank, a_rogue, a_web_bank, call, gone, is_there, parent_of
from tests.tables import each_row


async def spend(pool: ServerPool, server: MCPServer, episode: int) -> tuple[str, int]:
    async with pool.toolset(server, f"episode {episode}") as toolset:
        is_offered = "reset_balances" in await toolset.get_tools(CONTEXT)
        assert is_offered == (server.reset != "reset_balances"), "it is not the agent's"
        await call(toolset, "withdraw", account="checking", amount=100)
        left = await call(toolset, "withdraw", account="checking", amount=100)
        return left, await call(toolset, "process_id")


async def spent_by(pool: ServerPool, server: MCPServer, episodes: int) -> list[tuple[str, int]]:
    return await asyncio.gather(*(spend(pool, server, number) for number in range(episodes)))


def test_a_reset_tool_is_called_between_episodes_which_take_turns() -> None:
    async def main() -> None:
        server = a_bank(isolation="reset", reset="reset_balances")
        async with ServerPool(os.environ) as pool:
            found = await spent_by(pool, server, 6)
            assert {left for left, _ in found} == {"$1,300.00"}
            assert len({pid for _, pid in found}) == 1

    asyncio.run(main())


@each_row("is_async", [False, True])
def test_a_reset_function_is_called_between_episodes_and_only_there(is_async: bool) -> None:
    events: list[str] = []

    def reset() -> Any:
        events.append("reset")
        return asyncio.sleep(0) if is_async else None

    async def main() -> None:
        server = a_rogue("works", isolation="reset", reset=reset)
        async with ServerPool(os.environ) as pool:
            for _ in range(3):
                async with pool.toolset(server, "one") as toolset:
                    events.append(await call(toolset, "act"))

    asyncio.run(main())
    assert events == ["acted", "reset", "acted", "reset", "acted"]


def test_a_reset_that_fails_is_an_error_of_the_world() -> None:
    async def main() -> None:
        server = a_bank(isolation="reset", reset="no_such_tool")
        async with ServerPool(os.environ) as pool:
            await spend(pool, server, 1)
            with pytest.raises(ServerError, match="could not be reset between two episodes"):
                await spend(pool, server, 2)

    asyncio.run(main())


def test_a_server_that_cannot_be_reset_is_restarted_for_the_next_episode() -> None:
    attempts: list[str] = []

    def reset() -> None:
        attempts.append("reset")
        if len(attempts) == 1:
            raise RuntimeError("the last episode locked the table")

    async def main() -> None:
        server = a_bank(isolation="reset", reset=reset)
        async with ServerPool(os.environ) as pool:
            _, pid = await spend(pool, server, 1)
            left, fresh = await spend(pool, server, 2)
            assert (left, pool.restarts) == ("$1,300.00", 1)
            assert pid != fresh
            await spend(pool, server, 3)

    asyncio.run(main())
    assert attempts == ["reset"] * 3


@each_row("declare", [a_bank, a_web_bank])
def test_a_server_for_each_episode_lives_as_long_as_it(declare: Any) -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool:
            found = await spent_by(pool, declare(isolation="per_episode"), 2)
            assert {left for left, _ in found} == {"$1,300.00"}
            pids = {pid for _, pid in found}
            assert len(pids) == 2
            assert not any(map(is_there, pids))

    asyncio.run(main())


def test_an_episodes_own_server_is_not_replaced_behind_its_back() -> None:
    async def main() -> None:
        server = a_bank(isolation="per_episode")
        async with ServerPool(os.environ) as pool, pool.toolset(server, "shop #3") as toolset:
            pid = await call(toolset, "process_id")
            supervisor = parent_of(pid)
            os.kill(pid, 9)
            await gone(supervisor)
            with pytest.raises(ServerError, match="died between two calls of the episode shop #3"):
                await call(toolset, "get_balance", account="checking")

    asyncio.run(main())


def test_an_episode_that_is_cancelled_takes_its_own_server_along() -> None:
    async def enter(pool: ServerPool, known: asyncio.Future[int]) -> None:
        async with pool.toolset(a_bank(isolation="per_episode"), "one") as toolset:
            known.set_result(await call(toolset, "process_id"))
            await call(toolset, "hang")

    async def main() -> None:
        async with ServerPool(os.environ) as pool:
            known = asyncio.get_running_loop().create_future()
            episode = asyncio.ensure_future(enter(pool, known))
            pid = await known
            episode.cancel()
            await asyncio.wait({episode})
            assert episode.cancelled()
            assert not is_there(pid)

    asyncio.run(main())


def test_a_pool_that_closes_takes_an_unfinished_episodes_server_along() -> None:
    async def main() -> int:
        async with ServerPool(os.environ) as pool:
            unfinished = pool.toolset(a_bank(isolation="per_episode"), "one")
            toolset = await unfinished.__aenter__()
            pid = int(await call(toolset, "process_id"))
        assert not is_there(pid)
        with pytest.raises(ServerError):
            await call(toolset, "process_id")
        await unfinished.__aexit__(None, None, None)
        return pid

    asyncio.run(main())
