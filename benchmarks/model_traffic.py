"""`make bench`, a part: measure what watching adds to a model call, and write MODEL_TRAFFIC.md.

Each HTTP client asks a server on the loopback, a process apart that answers from memory, with and
without the hooks, in alternating blocks. The hooks record each call for an episode.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, process_time
from types import ModuleType

import aiohttp
import httpx
import httpx2
import openai
import requests
from measure import ROOT, machine

from ci_agent_eval.model_traffic import attribution, hooks
from ci_agent_eval.model_traffic.recorder import TrafficRecorder

LARGE = 1_000_000
"""Characters of the question, and of the answer, of a large call."""
EVENTS = 100
"""Events of a stream."""
ROUNDS = {"tiny": (25, 40), "large": (15, 10), "stream": (15, 10)}
"""Pairs of blocks, and the calls of a block."""
WHAT = {
    "tiny": "a short call",
    "large": "1 MB each way",
    "stream": f"a stream of {EVENTS} events",
}
MAX_RATIO, MAX_ADDED_MS = 1.1, 0.3
PACE_S = 0.01
"""Time between the events of a slow stream."""


def build_answer(text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    choices = [{**choice, "finish_reason": "stop"}]
    return json.dumps({"id": "1", "model": "m", "choices": choices, "usage": usage}).encode()


def build_event(text: str) -> bytes:
    return (
        b"data: %b\n\n"
        % json.dumps(
            {"id": "1", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]}
        ).encode()
    )


class Server(asyncio.Protocol):
    """Answers requests by the first part of their path."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.buffer = transport, bytearray()
        self.answers = {
            "tiny": self.plain(build_answer("hi")),
            "large": self.plain(build_answer("x" * LARGE)),
            "stream": self.chunked([build_event("word ")] * EVENTS + [b"data: [DONE]\n\n"]),
        }

    def plain(self, body: bytes) -> bytes:
        return (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"
            % (len(body), body)
        )

    def chunked(self, chunks: list[bytes]) -> bytes:
        return self.head() + b"".join(map(self.frame, chunks)) + self.frame(b"")

    def head(self) -> bytes:
        return (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\n\r\n"
        )

    def frame(self, chunk: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(chunk), chunk)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
        if end and len(body) >= int(length or 0):
            self.buffer = bytearray()
            kind = head.split(b"/")[1].decode()
            if kind == "slow":
                self.pace(20, self.head())
            else:
                self.transport.write(self.answers[kind])

    def pace(self, left: int, before: bytes = b"") -> None:
        """Send events that hold the time at which they are sent."""
        event = build_event(repr(time.monotonic())) if left else b"data: [DONE]\n\n"
        self.transport.write(before + self.frame(event) + (b"" if left else self.frame(b"")))
        if left:
            asyncio.get_running_loop().call_later(PACE_S, self.pace, left - 1)


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def run_server() -> Iterator[str]:
    command = [sys.executable, __file__, "serve"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


class HTTPXCalls:
    def __init__(self, library: ModuleType) -> None:
        self.client = library.Client(timeout=60)

    def close(self) -> None:
        self.client.close()

    def ask(self, url: str, body: bytes) -> int:
        return len(self.client.post(url, content=body).content)

    def stream(self, url: str, body: bytes, see: Callable[[bytes], object]) -> None:
        with self.client.stream("POST", url, content=body) as answer:
            for chunk in answer.iter_bytes():
                see(chunk)


class RequestsCalls:
    def __init__(self) -> None:
        self.client = requests.Session()

    def close(self) -> None:
        self.client.close()

    def ask(self, url: str, body: bytes) -> int:
        return len(self.client.post(url, data=body).content)

    def stream(self, url: str, body: bytes, see: Callable[[bytes], object]) -> None:
        with self.client.post(url, data=body, stream=True) as answer:
            for chunk in answer.iter_content(None):
                see(chunk)


class AIOHTTPCalls:
    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.client = self.runner.run(self.open())

    def close(self) -> None:
        self.runner.run(self.client.close())
        self.runner.close()

    async def open(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession()

    def run(self, work: Coroutine[object, object, int]) -> int:
        # The runner's own context is that of its first run: it has no recorder.
        return self.runner.run(work, context=copy_context())

    def ask(self, url: str, body: bytes) -> int:
        return self.run(self.ask_async(url, body))

    async def ask_async(self, url: str, body: bytes) -> int:
        async with self.client.post(url, data=body) as answer:
            return len(await answer.read())

    def stream(self, url: str, body: bytes, see: Callable[[bytes], object]) -> None:
        self.run(self.stream_async(url, body, see))

    async def stream_async(self, url: str, body: bytes, see: Callable[[bytes], object]) -> int:
        async with self.client.post(url, data=body) as answer:
            async for chunk in answer.content.iter_any():
                see(chunk)
        return 0


class OpenAICalls:
    """OpenAI's SDK, over httpx2: calls as an agent makes them."""

    def __init__(self) -> None:
        self.client = openai.OpenAI(api_key="k", base_url="http://unused")

    def close(self) -> None:
        self.client.close()

    def ask(self, url: str, body: bytes) -> int:
        self.client.base_url = url.removesuffix("chat/completions")
        answer = self.client.chat.completions.create(**json.loads(body))
        return len(answer.choices)

    def stream(self, url: str, body: bytes, see: Callable[[bytes], object]) -> None:
        self.client.base_url = url.removesuffix("chat/completions")
        for chunk in self.client.chat.completions.create(**json.loads(body)):
            see(chunk.choices[0].delta.content.encode())


CLIENTS = {
    "httpx": HTTPXCalls(httpx),
    "httpx2": HTTPXCalls(httpx2),
    "requests": RequestsCalls(),
    "aiohttp": AIOHTTPCalls(),
    "OpenAI's SDK": OpenAICalls(),
}


@dataclass
class Side:
    """The calls without or with the hooks: seconds of the wall and of this process, per call."""

    is_watched: bool
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)

    def run(self, call: Callable[[], object], count: int) -> None:
        gc.collect()
        with watch(count) if self.is_watched else nullcontext():
            for _ in range(count):
                started, used = perf_counter(), process_time()
                call()
                self.cpu.append(process_time() - used)
                self.wall.append(perf_counter() - started)


@contextmanager
def watch(count: int) -> Iterator[None]:
    """Record the calls of the `with` block, and check that all were seen to their end."""
    recorder = TrafficRecorder(time.monotonic)
    attribution.add_running(recorder)
    with hooks.use(), attribution.use_recorder(recorder):
        yield
    attribution.remove_running(recorder)
    states = [call.state for call in recorder.calls]
    if states != ["complete"] * count:
        sys.exit(f"not all calls were recorded: {states}")


def compare(call: Callable[[], object], rounds: int, count: int) -> tuple[Side, Side]:
    sides = Side(is_watched=False), Side(is_watched=True)
    for side in sides:
        side.run(call, 2)
        side.wall.clear()
        side.cpu.clear()
    for number in range(rounds):
        for side in sides[:: 1 if number % 2 else -1]:
            side.run(call, count)
    return sides


def find_typical(seconds: list[float]) -> float:
    """Return the 10th percentile in ms: other work of the machine only makes calls slower."""
    return statistics.quantiles(seconds, n=10)[0] * 1000


def measure(url: str, name: str, kind: str) -> str:
    """Measure one client and one size of calls; return the row."""
    client = CLIENTS[name]
    text = "x" * LARGE if kind == "large" else "hello"
    messages = {"model": "m", "messages": [{"role": "user", "content": text}]}
    body = json.dumps({**messages, "stream": kind == "stream"}).encode()
    target = f"{url}/{kind}/v1/chat/completions"
    if kind == "stream":
        bare, watched = compare(lambda: client.stream(target, body, len), *ROUNDS[kind])
    else:
        bare, watched = compare(lambda: client.ask(target, body), *ROUNDS[kind])
    wall = [find_typical(side.wall) for side in (bare, watched)]
    cpu = [find_typical(side.cpu) for side in (bare, watched)]
    added, ratio = cpu[1] - cpu[0], cpu[1] / cpu[0]
    met = "met" if added <= MAX_ADDED_MS and ratio <= MAX_RATIO else "**missed**"
    return (
        f"| {name}: {WHAT[kind]} | {wall[0]:.2f} ms | {wall[1]:.2f} ms "
        f"| {cpu[0]:.2f} ms | {added:+.2f} ms, {ratio - 1:+.0%} | {met} |"
    )


def measure_delay(url: str, name: str) -> str:
    """Measure how long after the server sent it an event arrives."""
    delays: list[list[float]] = []
    for is_watched in (False, True):
        arrived: list[float] = []

        def see(chunk: bytes, arrived: list[float] = arrived) -> None:
            now = time.monotonic()
            for line in chunk.splitlines():
                if line.startswith(b"data: {"):
                    delta = json.loads(line[6:])["choices"][0]["delta"]
                    arrived.append(now - float(delta["content"]))

        with watch(5) if is_watched else nullcontext():
            for _ in range(5):
                CLIENTS[name].stream(f"{url}/slow/v1/chat/completions", b"{}", see)
        delays.append(arrived)
    bare, watched = (statistics.median(side) * 1000 for side in delays)
    return f"| {name} | {bare:.2f} ms | {watched:.2f} ms | {max(delays[1]) * 1000:.1f} ms |"


def render(rows: list[str], delays: list[str], load: float) -> str:
    return "\n".join(
        [
            "# Benchmark results: watching the model traffic",
            "",
            f"Measured by `make bench` on: {machine()}; load average {load:.1f} at the start.",
            "A server on the loopback, a process apart, answers from memory; a real model takes",
            "far longer. The 10th percentile of calls in alternating blocks, without and with the",
            "hooks: other work of the machine only makes calls slower.",
            f"Target: at most {MAX_ADDED_MS} ms and {MAX_RATIO - 1:.0%} more processor time of the",
            "calling process. A recorded megabyte stays in memory, which a call without hooks uses",
            "again; that is most of the time which is added there.",
            "",
            "| what | bare | watched | processor, bare | added | target |",
            "|---|---:|---:|---:|---:|---|",
            *rows,
            "",
            "The time from sending an event to its arrival, in streams of 20 events",
            f"{PACE_S * 1000:.0f} ms apart:",
            "",
            "| what | bare, median | watched, median | watched, longest |",
            "|---|---:|---:|---:|",
            *delays,
            "",
        ]
    )


def main() -> None:
    load = os.getloadavg()[0]
    raw = [name for name in CLIENTS if name != "OpenAI's SDK"]
    with run_server() as url:
        rows = [measure(url, name, kind) for kind in ("tiny", "large") for name in CLIENTS]
        rows.append(measure(url, "OpenAI's SDK", "stream"))
        delays = [measure_delay(url, name) for name in raw]
    for client in CLIENTS.values():
        client.close()
    page = render(rows, delays, load)
    Path(__file__).with_name("MODEL_TRAFFIC.md").write_text(page, "utf-8")
    print(page)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        asyncio.run(serve())
    else:
        main()
