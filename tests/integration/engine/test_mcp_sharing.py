"""MCP servers shared by agents, isolated, and waited for."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Self

import pytest
from pydantic_ai.exceptions import ModelRetry

from ci_agent_eval.engine.declarations import Agent, MCPServer, Provider, Wait
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.run import aitest_run
from ci_agent_eval.engine.servers.pool import ServerPool
from ci_agent_eval.engine.session import EngineSession
from ci_agent_eval.errors import InputError
from tests.model_server import ModelServer
from tests.servers.rig import (
    CONTEXT,
    ENOUGH_S,
    a_bank,
    a_rogue,
    a_web_bank,
    an_sse_bank,
    call,
    gone,
    is_there,
    parent_of,
)
from tests.tables import each_row

# One server for many episodes: started once, and no answer reaches the wrong one.


WEB_BANKS = pytest.mark.parametrize("declare", [a_web_bank, an_sse_bank])


async def echoed(pool: ServerPool, server: MCPServer, episode: int) -> int:
    """Let an episode say words; each answer has to be its own."""
    async with pool.toolset(server, f"episode {episode}") as toolset:
        pid = int(await call(toolset, "process_id"))
        words = [f"{episode} says {turn}" for turn in range(3)]
        answers = [await call(toolset, "echo", text=word) for word in words]
        assert answers == words
        return pid


@WEB_BANKS
def test_a_web_server_is_asked_with_the_headers_declared_and_gone_at_the_end(
    declare: Callable[..., MCPServer],
) -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool:
            server = declare(headers={"X-Desk": "front"})
            async with pool.toolset(server, "one") as toolset:
                assert await call(toolset, "get_balance", account="checking") == "$1,500.00"
                assert (await call(toolset, "headers"))["x-desk"] == "front"
                with pytest.raises(ModelRetry):
                    await call(toolset, "fail", message="no")
            found = await asyncio.gather(*(echoed(pool, server, n) for n in range(10)))
            (pid,) = set(found)
        assert not is_there(pid)

    asyncio.run(main())


def test_a_server_gets_what_the_test_names_and_no_more() -> None:
    environ = {**os.environ, "DEPLOY_TOKEN": "not for servers", "LANG": "C.UTF-8"}

    async def main() -> None:
        server = a_bank(env={"BANK_MODE": "test"})
        async with ServerPool(environ) as pool, pool.toolset(server, "one") as toolset:
            found = await call(toolset, "environment")
        assert found.keys() <= {"PATH", "HOME", "LANG", "BANK_MODE", "LC_CTYPE"}
        assert found["BANK_MODE"] == "test"

    asyncio.run(main())


def test_a_server_we_do_not_start_is_used_left_alone_and_not_taken_for_ours() -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as owner, owner.toolset(a_web_bank(), "owner") as bank:
            url = f"http://{(await call(bank, 'headers'))['host']}/mcp"
            guest = MCPServer(transport="streamable-http", url=url)
            async with ServerPool({}) as pool, pool.toolset(guest, "guest") as toolset:
                assert await call(toolset, "get_balance", account="savings") == "$3,200.00"
            assert await call(bank, "echo", text="still here") == "still here"
            with pytest.raises(InputError, match="something listens at"):
                async with owner.toolset(a_web_bank(url=url), "two"):
                    pass

    asyncio.run(main())


def test_headers_reach_a_server_and_its_errors_do_not_hold_them() -> None:
    secret = "s3cret-header-value-0123456789"
    guest = MCPServer(
        transport="streamable-http",
        url="http://127.0.0.1:9/mcp",
        headers={"Authorization": f"Bearer {secret}"},
        startup_timeout_s=10,
    )

    async def main() -> None:
        async with ServerPool({}) as pool:
            with pytest.raises(ServerError, match="did not start") as caught:
                async with pool.toolset(guest, "one"):
                    pass
        assert secret not in str(caught.value)
        assert secret not in repr(guest)

    asyncio.run(main())


@each_row(
    "server",
    [
        a_bank(wait=Wait.for_log("the bank opens")),
        a_web_bank(wait=Wait.for_log("Uvicorn running")),
        a_rogue("late", wait=Wait.for_tools(["act"])),
        a_rogue("modern", wait=Wait.for_tools(["act"])),
    ],
)
def test_a_wait_is_waited_for(server: MCPServer) -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool, pool.toolset(server, "one") as toolset:
            assert server.wait is not None
            assert await call(toolset, "act" if server.wait.tools else "process_id")

    asyncio.run(main())


def test_a_pool_refuses_another_loop_and_use_after_its_end() -> None:
    async def use(pool: ServerPool) -> None:
        async with pool.toolset(a_rogue("works"), "one"):
            pass

    async def main() -> ServerPool:
        async with ServerPool(os.environ) as pool:
            with pytest.raises(ServerError, match="event loop"):
                await asyncio.to_thread(asyncio.run, use(pool))
        return pool

    pool = asyncio.run(main())
    with pytest.raises(ServerError, match="the session is over"):
        asyncio.run(use(pool))


# How episodes share a server: as it is, with a reset between, or one each.


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


# Episodes with servers of isolation `reset`: they take turns, and none waits for ever.


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
