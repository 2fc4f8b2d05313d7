"""Hooks are put in place when a client is there, cost nothing otherwise, and leave no trace."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from types import ModuleType

import aiohttp
import httpx
import httpx2
import pytest
import urllib3

from ci_agent_eval.model_traffic import hooks
from ci_agent_eval.model_traffic.hooks.patches import LibraryPatches, Patch
from tests.integration.model_traffic.conftest import run_episode
from tests.model_server import ModelServer
from tests.tables import each_row

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}

LATER = """
import sys, time
from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.recorder import TrafficRecorder

def imported():
    return [name for name in ("aiohttp", "httpx", "httpx2", "urllib3") if name in sys.modules]

hooks.install()
assert imported() == []
recorder = TrafficRecorder(time.monotonic)
attribution.add_running(recorder)
attribution.bind_recorder(recorder)
import httpx, httpx2, requests
import httpx._client
assert type(httpx.__loader__).__name__ == type(httpx.__spec__.loader).__name__ == "SourceFileLoader"
for library in (httpx, httpx2, requests):
    assert library.post(sys.argv[1], json={"model": "m", "messages": [{"role": "user", "content": "x"}]}).status_code == 200
assert [call.state for call in recorder.calls] == ["complete"] * 3, recorder.calls
hooks.uninstall()
assert imported() == ["httpx", "httpx2", "urllib3"]
import aiohttp
assert not hasattr(aiohttp.ClientSession._request, "__wrapped__")
assert not hasattr(httpx.Client._send_single_request, "__wrapped__")
"""


def test_clients_imported_later_are_hooked():
    with ModelServer(["hi"]) as server:
        subprocess.run(
            [sys.executable, "-W", "error", "-c", LATER, server.chat_url], check=True, timeout=120
        )
        assert len(server.requests) == 3


METHODS = [
    (httpx.Client, "_send_single_request"),
    (httpx.AsyncClient, "_send_single_request"),
    (httpx2.Client, "_send_single_request"),
    (httpx2.AsyncClient, "_send_single_request"),
    (urllib3.HTTPConnectionPool, "urlopen"),
    (urllib3.HTTPConnectionPool, "_make_request"),
    (aiohttp.ClientSession, "_request"),
]


def test_the_methods_are_restored():
    before = [vars(owner)[name] for owner, name in METHODS]
    finders = list(sys.meta_path)
    with hooks.use(), hooks.use():
        assert all(
            vars(owner)[name].__wrapped__ is method
            for (owner, name), method in zip(METHODS, before, strict=True)
        )
    assert [vars(owner)[name] for owner, name in METHODS] == before
    assert sys.meta_path == finders


def test_another_tools_wrapper_stays(monkeypatch):
    """It keeps our method, which sees nothing twice, and nothing once the hooks are uninstalled."""
    name = "_send_single_request"
    monkeypatch.setattr(httpx.Client, name, vars(httpx.Client)[name])  # restored at the end
    with ModelServer(["hi"]) as server, run_episode() as recorder:
        with hooks.use():
            ours = httpx.Client._send_single_request

            def wrapper(*args):
                return ours(*args)

            monkeypatch.setattr(httpx.Client, name, wrapper)
        assert httpx.Client._send_single_request is wrapper
        with hooks.use():
            assert httpx.post(server.chat_url, json=BODY).status_code == 200
        assert len(recorder.calls) == len(server.requests) == 1
        assert httpx.post(server.chat_url, json=BODY).status_code == 200
    assert (len(recorder.calls), len(server.requests)) == (1, 2)


def test_an_unsupported_version_is_said():
    library = ModuleType("future_client")
    library.__version__ = "99"
    patches = LibraryPatches({"future_client": lambda module: [Patch(module.Client, "send", id)]})
    with pytest.warns(RuntimeWarning, match="Model calls through future_client 99 are not seen"):
        patches.patch(library)


def test_a_body_from_an_iterator_is_sent_and_recorded():
    def parts():
        yield b'{"messages": '
        yield b"[]}"

    async def parts_async():
        for part in parts():
            yield part

    async def post():
        async with httpx.AsyncClient() as client:
            await client.post(server.chat_url, content=parts_async())

    with ModelServer(["hi"]) as server, hooks.use(), run_episode() as recorder:
        httpx.post(server.chat_url, content=parts())
        asyncio.run(post())
        with urllib3.PoolManager() as pool:
            pool.request("POST", server.chat_url, body=parts())
    assert [asked.body for asked in server.requests] == [{"messages": []}] * 3
    assert [call.body for call in recorder.calls] == [b'{"messages": []}'] * 3


@each_row("convert", [bytes, bytearray, memoryview, io.BytesIO, bytes.decode])
def test_aiohttp_records_each_kind_of_body(convert):
    async def post():
        content = convert(b'{"messages": []}')
        async with (
            aiohttp.ClientSession() as session,
            session.post(server.chat_url, data=content) as answer,
        ):
            await answer.read()

    with ModelServer(["hi"]) as server, hooks.use(), run_episode() as recorder:
        asyncio.run(post())
    assert [call.body for call in recorder.calls] == [b'{"messages": []}']
