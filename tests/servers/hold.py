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


async def hold() -> None:
    async with (
        ServerPool(os.environ) as pool,
        pool.toolsets([a_bank(), a_web_bank(), SLEEPER], "one") as (bank, web, sleeper),
    ):
        pids = [await call(bank, "process_id"), await call(web, "process_id")]
        pids += [await call(bank, "start_child"), await call(web, "start_child")]
        sleeping = asyncio.ensure_future(call(sleeper, "sleeper_execute", args=""))
        child = Path("child.pid")
        while not child.exists() or not child.read_text().strip():
            await asyncio.sleep(0.01)  # the shell tells of it in no other way
        pids.append(int(child.read_text()))
        Path("pids.json.part").write_text(json.dumps(pids))
        Path("pids.json.part").rename("pids.json")
        print("ready", flush=True, file=sys.__stdout__)
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
