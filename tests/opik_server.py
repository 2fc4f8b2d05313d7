"""A server on the loopback that keeps what the stand-in for `opik` sends it, or misbehaves."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

STUB = Path(__file__).parent / "opik_stub"


@dataclass
class OpikServer:
    """What has arrived, and at which path it hangs or breaks."""

    url: str = ""
    hangs_at: str | None = None
    breaks_at: str | None = None
    calls: list[str] = field(default_factory=list)
    items: dict[str, dict[str, Any]] = field(default_factory=dict)
    experiments: dict[str, dict[str, Any]] = field(default_factory=dict)
    traces: dict[str, dict[str, Any]] = field(default_factory=dict)
    links: list[dict[str, Any]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def environ(self) -> dict[str, str]:
        """The variables under which Opik is installed and configured for it."""
        return {"OPIK_URL_OVERRIDE": self.url, "PYTHONPATH": str(STUB)}

    def answer(self, path: str, body: Any) -> Any:
        self.calls.append(path)
        if path == "items/find":
            return list(self.items.values())
        if path == "items":
            self.items |= {item["id"]: item for item in body["items"]}
        elif path == "experiments":
            self.experiments[body["id"]] = body
        elif path == "traces":
            self.traces[body["id"]] = body
        elif path == "links":
            self.links.append(body)
        return None


@contextmanager
def opik_server() -> Iterator[OpikServer]:
    server = OpikServer()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            self._answer(None)

        def do_POST(self) -> None:
            self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _answer(self, body: Any) -> None:
            path = self.path.strip("/")
            if path == server.hangs_at:
                server.stopped.wait()
                return
            if path == server.breaks_at:
                self.send_error(500)
                return
            text = json.dumps(server.answer(path, body)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    listening.daemon_threads = True
    server.url = f"http://127.0.0.1:{listening.server_address[1]}/"
    thread = threading.Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopped.set()
        listening.shutdown()
        listening.server_close()
        thread.join()
