"""Servers that die, hang or talk nonsense: a clear error for one episode, and the rest go on."""

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest
from pydantic_ai.exceptions import ModelRetry

from ci_agent_eval.engine.declarations import MCPServer, Wait
from ci_agent_eval.engine.infrastructure_errors import ServerError
from ci_agent_eval.engine.servers.pool import ServerPool
from tests.integration.engine.rig import Clock
from tests.servers.rig import CONTEXT, a_bank, a_rogue, a_web_bank, call
from tests.tables import each_row

BANKS = pytest.mark.parametrize(
    "bank", [a_bank(), pytest.param(a_web_bank(), marks=pytest.mark.full)], ids=["stdio", "http"]
)


def start_failure(server: MCPServer) -> str:
    """Return what is said of a server that does not start; twice the same, and fast."""

    async def main() -> str:
        async with ServerPool(os.environ, Clock().sleep) as pool:
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


WEB = {"transport": "streamable-http", "url": "http://127.0.0.1:{port}/mcp"}


@each_row(("mode", "how"), [("dies", {}), ("refuses", {}), ("dies", WEB)])
def test_a_server_that_ends_at_once_is_quoted(mode: str, how: dict[str, str]) -> None:
    # Waiting for this deadline would exceed the test's own time limit.
    said = start_failure(a_rogue(mode, startup_timeout_s=3600, **how))
    assert "did not start" in said
    assert ("no database at localhost:5432" in said) == (mode == "dies")


@each_row(
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


async def crash(pool: ServerPool, server: MCPServer, episode_id: str) -> None:
    async with pool.toolset(server, episode_id) as toolset:
        with pytest.raises(ServerError, match="was lost during the call of crash"):
            await call(toolset, "crash")


def test_a_server_that_crashes_in_many_episodes_serves_the_others() -> None:
    async def main() -> list[float]:
        clock = Clock()
        async with ServerPool(os.environ, clock.sleep) as pool:
            for number in range(3):
                await crash(pool, a_bank(), f"bad {number}")
            async with pool.toolset(a_bank(), "good") as toolset:
                assert await call(toolset, "echo", text="on") == "on"
            assert pool.restarts == 3
        return clock.slept

    assert asyncio.run(main()) == []


def test_a_start_that_fails_is_repeated_with_backoff(tmp_path: Path) -> None:
    async def main() -> list[float]:
        clock, server = Clock(), a_rogue("moody", str(tmp_path / "starts"))
        async with ServerPool(os.environ, clock.sleep) as pool:
            async with pool.toolset(server, "one") as toolset:
                assert await call(toolset, "act") == "acted"
            assert pool.restarts == 0
        return clock.slept

    assert asyncio.run(main()) == [0.5, 1.0]


def test_a_server_is_given_up_after_three_failed_starts_in_a_row(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    code = f"import sys; print('x', file=open({str(starts)!r}, 'a')); sys.exit('no database')"
    said = start_failure(MCPServer(command=[sys.executable, "-S", "-c", code], name="db"))
    assert len(starts.read_text().splitlines()) == 3
    assert said.startswith("The MCP server db did not start: ")
    assert "  no database\n3 starts in a row failed: the server is not started again" in said


def test_calls_that_were_open_when_a_server_crashed_end_with_it() -> None:
    async def main() -> None:
        async with (
            ServerPool(os.environ) as pool,
            pool.toolset(a_bank(), "waiting") as other,
            pool.toolset(a_bank(), "crashing") as toolset,
        ):
            tools = await other.get_tools(CONTEXT)
            waiting = asyncio.ensure_future(other.call_tool("hang", {}, CONTEXT, tools["hang"]))
            await asyncio.sleep(0)
            await crash(pool, a_bank(), "crashing too")
            with pytest.raises(ServerError, match="was lost during the call of hang: Connection"):
                await waiting
            assert await call(toolset, "echo", text="on") == "on"
            assert pool.restarts == 1

    asyncio.run(main())


NOT_SUPPORTED = {
    "ask_user": "Elicitation not supported",
    "ask_model": "Sampling not supported",
    "ask_roots": "List roots not supported",
}


@BANKS
def test_a_servers_request_to_the_client_is_an_error_of_that_call(bank: MCPServer) -> None:
    async def main() -> None:
        async with ServerPool(os.environ) as pool, pool.toolset(bank, "one") as toolset:
            pid = await call(toolset, "process_id")
            for tool, said in NOT_SUPPORTED.items():
                with pytest.raises(ModelRetry, match=said):
                    await call(toolset, tool)
                assert await call(toolset, "process_id") == pid
            assert pool.restarts == 0

    asyncio.run(main())


def test_a_server_that_forgot_the_session_is_replaced() -> None:
    async def main() -> None:
        server = a_rogue("forgets")
        async with ServerPool(os.environ) as pool, pool.toolset(server, "one") as toolset:
            for _ in range(2):
                with pytest.raises(ServerError, match=r"was lost.*: Session not found"):
                    await call(toolset, "act")
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


@each_row(
    ("mode", "said"),
    [
        ("garbage", r"did not answer.*2 line\(s\) to stdout that are not messages"),
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
