"""One server for many episodes: started once, and no answer reaches the wrong one."""

import asyncio
import os
from collections.abc import Callable

import pytest
from pydantic_ai.exceptions import ModelRetry

from ci_agent_eval.engine.declarations import MCPServer, Wait
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.pool import ServerPool
from ci_agent_eval.errors import InputError
from tests.servers.rig import a_bank, a_rogue, a_web_bank, an_sse_bank, call, is_there
from tests.tables import each_row

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
