"""A model's API as a process of its own, light enough for a machine of two cores.

It answers what the script of `tests.model_server` says, but speaks HTTP/1.1 by itself: the
server must take little of the processor that its clients are measured on. Only what the
clients here send is understood: requests with a `Content-Length`, one after another.

`python -m benchmarks.peers.model --delay-ms 50` prints its address and serves until a signal.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import socket
import sys
from dataclasses import asdict, dataclass

from tests.model_server.script import Script, completion

SCRIPT = [
    {"tool_calls": [{"name": "echo", "arguments": {"text": "{prompt}"}}]},
    "The tool said {tool}",
]
"""Of every episode: a call of the tool with the prompt, and what the tool said."""

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    b"connection: keep-alive\r\ncontent-length: %d\r\n\r\n%s"
)


@dataclass
class Load:
    """What was asked of the server since it was last asked for these figures."""

    calls: int = 0
    peak: int = 0
    """The most that were open at once."""
    open: int = 0

    def begin(self) -> None:
        """Count a call that came."""
        self.calls += 1
        self.open += 1
        self.peak = max(self.peak, self.open)

    def taken(self) -> bytes:
        """Return the figures as JSON and begin anew."""
        figures = json.dumps(asdict(self)).encode()
        self.calls, self.peak = 0, self.open
        return figures


class Connection(asyncio.Protocol):
    """One client's connection."""

    def __init__(self, script: Script, load: Load, delay_s: float) -> None:
        self.script, self.load, self.delay_s = script, load, delay_s
        self.received = b""
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if isinstance(transport, asyncio.Transport):
            self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (found := parse_request(self.received)) is not None:
            path, body, self.received = found
            self._answer(path, body)

    def _answer(self, path: str, body: bytes) -> None:
        if path == "/load":
            self._send(self.load.taken(), counted=False)
            return
        self.load.begin()
        answer = answer_to(self.script, body)
        loop = asyncio.get_running_loop()
        # Zero is what the capacity is measured with: no timer then, as little as there can be.
        if self.delay_s:
            loop.call_later(self.delay_s, self._send, answer)
        else:
            self._send(answer)

    def _send(self, body: bytes, *, counted: bool = True) -> None:
        self.load.open -= counted
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(_HEAD % (len(body), body))


def parse_request(received: bytes) -> tuple[str, bytes, bytes] | None:
    """Return path, body and what is left of a request that came whole, else None."""
    head, blank, rest = received.partition(b"\r\n\r\n")
    if not blank:
        return None
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    if len(rest) < length:
        return None
    return head.split(b" ", 2)[1].decode(), rest[:length], rest[length:]


def answer_to(script: Script, body: bytes) -> bytes:
    """Return the completion that a request gets."""
    asked = json.loads(body)
    turn = 1 + sum(message["role"] == "assistant" for message in asked["messages"])
    step = script.step(asked["messages"])
    return json.dumps(completion(step, asked["model"], turn)).encode()


async def serve(delay_s: float) -> None:
    """Print the address, then serve."""
    script, load = Script(SCRIPT), Load()
    # Named as TCP: asyncio turns Nagle's algorithm off only where the protocol says so.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(script, load, delay_s), sock=listening, backlog=1024
    )
    print(json.dumps({"base_url": f"http://127.0.0.1:{listening.getsockname()[1]}/v1"}), flush=True)
    async with server:
        await server.serve_forever()


def main(arguments: list[str]) -> None:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers.model")
    parser.add_argument("--delay-ms", type=float, default=0)
    asyncio.run(serve(parser.parse_args(arguments).delay_ms / 1000))


if __name__ == "__main__":
    main(sys.argv[1:])
