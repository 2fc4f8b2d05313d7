"""Servers that die, hang or talk nonsense: a clear error for one episode, and the rest go on."""

import asyncio
import os
import re
import signal

import pytest
from pydantic_ai.exceptions import ModelRetry

from ci_agent_eval.engine.declarations import MCPServer, Wait
from ci_agent_eval.engine.faults import ServerError
from ci_agent_eval.engine.servers.pool import ServerPool
from tests.servers.rig import a_bank, a_rogue, a_web_bank, call, gone, is_there, parent_of

BANKS = pytest.mark.parametrize("bank", [a_bank(), a_web_bank()], ids=["stdio", "http"])


def start_failure(server: MCPServer) -> str:
    """Return what is said of a server that does not start; twice the same, and fast."""

    async def main() -> str:
        async with ServerPool(os.environ) as pool:
            said = []
            for _ in range(2):
                with pytest.raises(ServerError) as caught:
                    async with pool.toolset(server, "one"):
                        pass
                said.append(str(caught.value))
            assert said[0] == said[1]
            return said[0]

    return asyncio.run(main())


def test_a_server_that_never_answers_misses_its_deadline() -> None:
    said = start_failure(a_rogue("silent", startup_timeout_s=0.5))
    assert "The MCP server rogue was not ready within 0.5 s" in said
    assert "  rogue: silent" in said


@pytest.mark.parametrize("mode", ["dies", "refuses"])
def test_a_server_that_ends_at_once_is_quoted(mode: str) -> None:
    # Waiting for this deadline would exceed the test's own time limit.
    said = start_failure(a_rogue(mode, startup_timeout_s=3600))
    assert "did not start" in said
    assert ("no database at localhost:5432" in said) == (mode == "dies")


def test_a_web_server_that_ends_at_once_is_quoted() -> None:
    server = a_rogue("dies", transport="streamable-http", url="http://127.0.0.1:{port}/mcp")
    assert "no database at localhost:5432" in start_failure(server)


def test_a_program_that_is_not_there_is_named() -> None:
    assert "cannot start no-such-program" in start_failure(MCPServer(command=["no-such-program"]))


@pytest.mark.parametrize(
    "wait", [Wait.for_tools(["fly"], timeout_s=0.5), Wait.for_log("ready to fly", timeout_s=0.5)]
)
def test_a_wait_that_is_not_met_misses_its_own_deadline(wait: Wait) -> None:
    said = start_failure(a_rogue("works", wait=wait))
    assert "was not ready within 0.5 s" in said


def test_secrets_of_a_servers_environment_are_not_quoted() -> None:
    secret = "hunter2-hunter2-hunter2"
    code = "import os, sys; sys.exit('cannot log in with ' + os.environ['DB_PASSWORD'])"
    said = start_failure(MCPServer(command=["python", "-c", code], env={"DB_PASSWORD": secret}))
    assert "cannot log in with [redacted]" in said


def test_a_tool_that_reports_an_error_is_the_models_business() -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool, pool.toolset(a_bank(), "one") as toolset:
            with pytest.raises(ModelRetry, match="fail"):
                await call(toolset, "fail", message="no such account")
            assert await call(toolset, "echo", text="on") == "on"

    asyncio.run(main())


@BANKS
def test_a_crash_ends_one_call_and_the_server_is_started_again(bank: MCPServer) -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool:
            async with pool.toolset(bank, "other") as other:
                before = await call(other, "process_id")
                async with pool.toolset(bank, "one") as toolset:
                    with pytest.raises(ServerError, match=r"(?s)was lost during.*about to crash"):
                        await call(toolset, "crash")
                assert await call(other, "process_id") != before
                assert await call(other, "get_balance", account="checking") == "$1,500.00"
            assert pool.restarts == 1

    asyncio.run(main())


def test_a_server_killed_between_two_calls_is_started_again() -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool, pool.toolset(a_bank(), "one") as toolset:
            pid = await call(toolset, "process_id")
            leash = parent_of(pid)
            os.kill(pid, signal.SIGKILL)
            await gone(leash)
            others = await asyncio.gather(*(call(toolset, "process_id") for _ in range(20)))
            assert len(set(others)) == 1
            assert pid not in others
            assert pool.restarts == 1

    asyncio.run(main())


def test_a_server_that_dies_again_without_having_served_is_left_alone() -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool, pool.toolset(a_bank(), "one") as toolset:
            for _ in range(2):
                with pytest.raises(ServerError, match="was lost"):
                    await call(toolset, "crash")
            with pytest.raises(ServerError, match=r"(?s)died again.*about to crash"):
                await call(toolset, "crash")
            assert pool.restarts == 1

    asyncio.run(main())


@BANKS
def test_a_call_that_hangs_ends_alone(bank: MCPServer) -> None:
    async def hang(pool: ServerPool, server: MCPServer) -> str:
        async with pool.toolset(server, "one") as toolset:
            with pytest.raises(ServerError) as caught:
                await call(toolset, "hang")
            return str(caught.value)

    async def work(pool: ServerPool, server: MCPServer) -> list[int]:
        async with pool.toolset(server, "two") as toolset:
            return [await call(toolset, "process_id") for _ in range(20)]

    async def main() -> None:
        server = MCPServer(**{**_fields(bank), "call_timeout_s": 2})
        async with ServerPool(os.environ) as pool:
            said, before = await asyncio.gather(hang(pool, server), work(pool, server))
            assert "did not answer the call of hang in 2 s" in said
            # It answers when it is asked whether it is there, and so it stays.
            assert set(await work(pool, server)) == set(before)
            assert pool.restarts == 0

    asyncio.run(main())


def _fields(server: MCPServer) -> dict[str, object]:
    return {name: getattr(server, name) for name in server.__slots__}


def test_a_server_that_went_deaf_is_replaced() -> None:
    async def main() -> None:
        server = a_rogue("deaf", call_timeout_s=1)
        async with ServerPool(os.environ) as pool, pool.toolset(server, "one") as toolset:
            with pytest.raises(ServerError, match="did not answer"):
                await call(toolset, "act")
            with pytest.raises(ServerError, match="did not answer"):
                await call(toolset, "act")
            assert pool.restarts == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("garbage", r"did not answer.*2 line\(s\) to stdout that are no messages"),
        ("binary", r"did not answer the call of act"),
        ("malformed", r"gave no answer to the call of act that can be read"),
    ],
)
def test_nonsense_on_stdout_ends_the_call(mode: str, said: str) -> None:
    async def main() -> None:
        server = a_rogue(mode, call_timeout_s=1)
        async with ServerPool(os.environ) as pool, pool.toolset(server, "one") as toolset:
            with pytest.raises(ServerError) as caught:
                await call(toolset, "act")
            assert re.search(said, str(caught.value), re.DOTALL)

    asyncio.run(main())


def test_a_server_that_logs_to_stdout_but_answers_is_put_up_with() -> None:
    async def main() -> None:
        server = a_rogue("noisy")
        async with ServerPool(os.environ) as pool, pool.toolset(server, "one") as toolset:
            assert await call(toolset, "act") == "acted"

    asyncio.run(main())


def test_a_cancelled_call_leaves_the_server_to_the_others() -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool, pool.toolset(a_bank(), "one") as toolset:
            pid = await call(toolset, "process_id")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await call(toolset, "hang")
            assert await call(toolset, "process_id") == pid
        assert not is_there(pid)

    asyncio.run(main())


def test_a_start_that_its_episode_gave_up_serves_the_others() -> None:
    async def enter(pool: ServerPool) -> int:
        async with pool.toolset(a_bank(), "one") as toolset:
            return int(await call(toolset, "process_id"))

    async def main() -> None:
        async with ServerPool(os.environ) as pool:
            first = asyncio.ensure_future(enter(pool))
            second = asyncio.ensure_future(enter(pool))
            await asyncio.sleep(0)
            first.cancel()
            assert is_there(await second)
            assert first.cancelled()

    asyncio.run(main())
