"""Start a stdio server, a web server and a command, say which processes there are, and wait.

Run as a script, or collected by pytest as a test (`HOW` in the environment: pass, fail or wait).
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from ci_agent_eval.engine.declarations import CLIServer
from ci_agent_eval.engine.servers.pool import ServerPool
from tests.servers.rig import a_bank, a_web_bank, call

SLEEPER = CLIServer(
    name="sleeper", command="sh -c 'sleep 1000 & echo $! > child.pid; wait'", timeout=1000
)


def child_of_sleeper() -> int:
    """Wait for the command to open the pipe, and return what it wrote."""
    return int(Path("child.pid").read_text())


def say(pids: list[int]) -> None:
    Path("pids.json").write_text(json.dumps(pids))
    sys.__stdout__.write("ready\n")
    sys.__stdout__.flush()


async def hold() -> None:
    os.mkfifo("child.pid")
    async with (
        ServerPool(os.environ) as pool,
        pool.toolsets([a_bank(), a_web_bank(), SLEEPER], "one") as (bank, web, sleeper),
    ):
        pids = [await call(bank, "process_id"), await call(web, "process_id")]
        pids += [await call(bank, "start_child"), await call(web, "start_child")]
        sleeping = asyncio.ensure_future(call(sleeper, "sleeper_execute", args=""))
        pids.append(await asyncio.to_thread(child_of_sleeper))
        say(pids)
        how = os.environ["HOW"]
        assert how != "fail"
        if how == "wait":
            await sleeping
        sleeping.cancel()
        await asyncio.wait({sleeping})


def test_hold() -> None:
    asyncio.run(hold())


if __name__ == "__main__":
    asyncio.run(hold())
