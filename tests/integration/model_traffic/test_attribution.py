"""Attribution of requests, the guard of the network, and patches."""

from __future__ import annotations

import asyncio
import contextvars
import io
import json
import queue
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from ci_agent_eval.model_traffic import attribution, hooks, network_guard
from ci_agent_eval.model_traffic.hooks.patches import LibraryPatches, Patch
from ci_agent_eval.model_traffic.network_guard import RefusedConnectionError, is_local
from tests.integration.model_traffic.clients import CLIENTS
from tests.integration.model_traffic.conftest import run_episode
from tests.model_server import ModelServer
from tests.tables import each_row

# Each model call belongs to the episode that made it, also from tasks, threads and executors.


def body(text: str):
    return {"model": "m", "messages": [{"role": "user", "content": text}]}


def prompts(recorder) -> list[str]:
    return [json.loads(call.body)["messages"][0]["content"] for call in recorder.calls]


@pytest.fixture
def server():
    with ModelServer(["hi"]) as server:
        yield server


class AskingThread(threading.Thread):
    def __init__(self, ask):
        super().__init__()
        self.ask = ask

    def run(self):
        self.ask()


def start_thread(ask):
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()


def start_subclass(ask):
    thread = AskingThread(ask)
    thread.start()
    thread.join()


def submit(ask):
    with ThreadPoolExecutor(1) as pool:
        pool.submit(ask).result()


def run_in_executor(ask):
    async def main():
        await asyncio.get_running_loop().run_in_executor(None, ask)

    asyncio.run(main())


def start_thread_in_thread(ask):
    start_thread(lambda: start_thread(ask))


@pytest.mark.parametrize(
    "run",
    [
        start_thread,
        start_subclass,
        submit,
        run_in_executor,
        start_thread_in_thread,
    ],
)
def test_a_thread_belongs_to_the_episode_that_starts_it(run, server, hooked):
    def ask():
        requests.post(server.chat_url, json=body("in a thread"))

    with run_episode() as other, run_episode() as recorder:
        run(ask)
    assert prompts(recorder) == ["in a thread"]
    assert other.calls == ()


def test_a_pool_serves_each_episode_that_submits(server, hooked):
    def ask(text):
        requests.post(server.chat_url, json=body(text))

    with ThreadPoolExecutor(1) as pool:
        with run_episode() as first:
            pool.submit(ask, "first").result()
        with run_episode() as second, run_episode():
            with attribution.use_recorder(second):
                pool.submit(ask, "second").result()
            with attribution.use_recorder(None):
                pool.submit(ask, text="third").result()
        assert prompts(first) == ["first"]
        assert prompts(second) == ["second"]
        [unattributed] = attribution.take_unattributed()
    assert unattributed.url == server.chat_url
    assert unattributed.method == "POST"
    assert unattributed.running[0] is second


class Worker:
    """A thread that began before the episode, fed by a queue."""

    def __init__(self, url):
        self.url = url
        self.jobs = queue.SimpleQueue()
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        while (job := self.jobs.get()) is not None:
            text, done = job
            requests.post(self.url, json=body(text))
            done.set()

    def ask(self, text):
        done = threading.Event()
        self.jobs.put((text, done))
        assert done.wait(600)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.jobs.put(None)
        self.thread.join()


def test_a_worker_from_before_is_assigned_to_the_only_episode(server, hooked):
    with Worker(server.chat_url) as worker, run_episode() as recorder:
        worker.ask("who am I?")
    assert prompts(recorder) == ["who am I?"]
    assert recorder.is_shared


def test_a_worker_from_before_is_unattributed_among_several(server, hooked):
    with Worker(server.chat_url) as worker, run_episode() as first, run_episode() as second:
        worker.ask("who am I?")
        [unattributed] = attribution.take_unattributed()
    assert unattributed.running == (first, second)
    assert first.calls == second.calls == ()
    assert not first.is_shared
    assert len(server.requests) == 1


def test_a_judges_threads_stay_unseen(server, recorder):
    with attribution.suspend_recording():
        start_thread(lambda: requests.post(server.chat_url, json=body("judge")))
        submit(lambda: requests.post(server.chat_url, json=body("judge")))
    assert len(server.requests) == 2
    assert recorder.calls == ()


def test_a_thread_sees_no_other_context_variable(recorder):
    """As without the hooks: an agent must not find values that production does not show it."""
    variable = contextvars.ContextVar("variable", default="default")
    variable.set("set by the episode")
    seen = []
    start_thread(lambda: seen.append(variable.get()))
    submit(lambda: seen.append(variable.get()))
    assert seen == ["default", "default"]


# Replay reaches nothing beyond the loopback. No address here exists: 192.0.2.0/24 is reserved.


CONNECTION_ERRORS = (
    httpx.ConnectError,
    httpx2.ConnectError,
    requests.ConnectionError,
    urllib3.exceptions.NewConnectionError,
    aiohttp.ClientConnectorError,
)
BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


@each_row("address", ["http://192.0.2.1/", "http://model.example/v1"])
@each_row("name", CLIENTS)
def test_no_client_reaches_another_machine(name, address):
    client = CLIENTS[name]()
    with network_guard.refuse_connections(), pytest.raises(CONNECTION_ERRORS) as refused:
        client.post(address, BODY)
    client.close()
    host = address.split("/")[2]
    chain, error = [], refused.value
    while error is not None:
        chain.append(str(error))
        error = error.__cause__ or error.__context__
    assert f"no connection to {host}:80: a replayed suite reaches only this machine" in " ".join(
        chain
    )


def test_sockets_are_refused_in_every_thread():
    refused = []

    def connect():
        with socket.socket() as connection:
            try:
                connection.connect(("192.0.2.1", 443))
            except RefusedConnectionError as error:
                refused.append(str(error))

    with network_guard.refuse_connections():
        thread = threading.Thread(target=connect)
        thread.start()
        thread.join()
    assert refused[0].startswith("no connection to 192.0.2.1:443: ")


def test_datagrams_and_names_are_refused():
    with (
        network_guard.refuse_connections(),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams,
    ):
        with pytest.raises(RefusedConnectionError, match=r"192\.0\.2\.1:53"):
            datagrams.sendto(b"", ("192.0.2.1", 53))
        with pytest.raises(RefusedConnectionError, match=r"192\.0\.2\.1:53"):
            datagrams.sendmsg([b""], [], 0, ("192.0.2.1", 53))
        with pytest.raises(RefusedConnectionError, match=r"model\.example"):
            socket.gethostbyname("model.example")
        with pytest.raises(RefusedConnectionError, match=r"model\.example:443"):
            socket.getaddrinfo(b"model.example", 443)


def test_the_guard_ends_with_its_last_user():
    with network_guard.refuse_connections():
        with network_guard.refuse_connections():
            pass
        with pytest.raises(RefusedConnectionError):
            socket.gethostbyname("model.example")
    assert socket.gethostbyname("127.0.0.1") == "127.0.0.1"
    network_guard._audit("socket.gethostbyname", ("model.example",))  # as outside: not refused


@each_row(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::1%lo", True),
        ("::ffff:127.0.0.1", True),
        ("0.0.0.0", True),
        ("::", True),
        ("", True),
        (None, True),
        (b"localhost", True),
        ("LOCALHOST.", True),
        ("api.localhost", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("metadata", False),
    ],
)
def test_local_hosts(host, expected):
    assert is_local(host) is expected


# Hooks are put in place when a client is there, cost nothing otherwise, and leave no trace.


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
