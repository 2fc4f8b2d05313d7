"""How many calls a second the model server can answer, so that it is known not to be the limit."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent.parent
TOOL = {
    "type": "function",
    "function": {
        "name": "echo",
        "description": "Return the text.",
        "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
    },
}


@dataclass(frozen=True)
class ModelProcess:
    """The model server, and what it has done."""

    url: str
    """What a client's `base_url` is set to."""
    process: subprocess.Popen[str]

    @property
    def cpu_seconds(self) -> float:
        """Processor seconds of the server so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
        # Fields 14 and 15 of proc(5), in ticks of a hundredth of a second.
        return (int(fields[11]) + int(fields[12])) / 100

    def taken_load(self) -> dict[str, int]:
        """Return `calls` and `peak` since they were last taken."""
        connection = HTTPConnection(urlsplit(self.url).netloc)
        connection.request("GET", "/load")
        load: dict[str, int] = json.loads(connection.getresponse().read())
        connection.close()
        return load


@contextmanager
def model_server(delay_ms: float) -> Iterator[ModelProcess]:
    """Serve the script from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.peers.model", "--delay-ms", str(delay_ms)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield ModelProcess(json.loads(process.stdout.readline())["base_url"], process)
        finally:
            process.terminate()


@dataclass(frozen=True)
class Capacity:
    """What the server answered under a load of nothing but requests."""

    calls_a_second: float
    server_cpu_ms: float
    """Processor milliseconds of the server for each call."""


def measured_capacity(delay_ms: float, calls: int, connections: int = 50) -> Capacity:
    """Measure a server with that delay; raw sockets ask, as light as can be."""
    with model_server(delay_ms) as server:
        asyncio.run(ask(server.url, connections, connections))
        before, started = server.cpu_seconds, perf_counter()
        asyncio.run(ask(server.url, calls, connections))
        seconds = perf_counter() - started
        return Capacity(calls / seconds, (server.cpu_seconds - before) / calls * 1000)


async def ask(url: str, calls: int, connections: int) -> None:
    """Send that many calls over that many connections at once."""
    numbers = iter(range(calls))
    await asyncio.gather(*(_client(url, numbers) for _ in range(connections)))


async def _client(url: str, numbers: Iterator[int]) -> None:
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    for number in numbers:
        writer.write(_request(number))
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
    writer.close()
    await writer.wait_closed()


def _request(number: int) -> bytes:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": f"balance of account {number}"},
    ]
    body = json.dumps({"model": "gpt-5-mini", "messages": messages, "tools": [TOOL]}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: model\r\ncontent-length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body
