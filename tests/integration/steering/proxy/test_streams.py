"""Nothing of a stream is held back, however many are open."""

from __future__ import annotations

import asyncio

import httpx2
import pytest

from tests.integration.steering.proxy.asking import ASK, FULL, PATHS, STREAM, every_api
from tests.integration.steering.proxy.rig import Rig

MANY = 120
"""More than the 100 connections that a client of httpx opens by itself."""


class InStep:
    """A provider whose next part waits until the client has the one before."""

    def __init__(self, parts):
        self._parts = parts
        self.received = {}

    async def __call__(self, asked, exchange):
        name = dict(asked.headers)[b"x-session-id"]
        steps = self.received.setdefault(name, asyncio.Semaphore(0))
        await exchange.start()
        for part in self._parts:
            await exchange.part(part)
            await steps.acquire()
        await exchange.end()


async def followed(client, rig, provider, *, api, name, parts):
    """Read a stream part by part, and tell the provider of each one."""
    got = b""
    async with client.stream(
        "POST", rig.url + PATHS[api], json=ASK, headers={"x-session-id": name}
    ) as response:
        expected = iter(parts)
        due = next(expected, b"")
        async for chunk in response.aiter_raw():
            got += chunk
            while due and got.endswith(due):
                rig.on_loop(provider.received[name.encode()].release)
                due = next(expected, b"")
    return got


@every_api
def test_each_event_reaches_the_client_before_the_next_is_sent(api):
    parts = STREAM[api](text="Let me see.")
    provider = InStep(parts)

    async def go():
        async with httpx2.AsyncClient(trust_env=False, timeout=60) as client:
            return await followed(client, rig, provider, api=api, name="s", parts=parts)

    with Rig(provider) as rig:
        assert asyncio.run(go()) == b"".join(parts)


@pytest.mark.timeout(600)
def test_many_steered_streams_that_are_open_together():
    arrived, all_here = [], asyncio.Event()

    async def meet(asked, exchange):
        arrived.append(asked)
        if len(arrived) == MANY:
            all_here.set()
        await exchange.start()
        await all_here.wait()
        is_first = len(asked.json["messages"]) == 1
        for part in STREAM["messages"](FULL) if is_first else STREAM["messages"](text="Fine."):
            await exchange.part(part)
        await exchange.end()

    async def one(client, at):
        headers = {"x-session-id": str(at)}
        return (await client.post(rig.url + PATHS["messages"], json=ASK, headers=headers)).text

    async def go():
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(trust_env=False, timeout=None, limits=limits) as client:
            return await asyncio.gather(*(one(client, at) for at in range(MANY)))

    with Rig(meet) as rig:
        got = asyncio.run(go())
    assert all("Fi" in text and "tool_use" not in text for text in got)
    assert len(arrived) == 2 * MANY
