"""A model on the loopback that asks a coding agent to run given shell commands, one per turn.

It answers Anthropic Messages, OpenAI Chat Completions and Responses, and Gemini.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

from tests.steering_agents.model_answers import (
    Answer,
    ModelFormat,
    build_calls,
    find_format,
)

Json = dict[str, Any]

FINAL_TEXT = "Done."
"""The model's answer after the last command."""


class ScriptedModel:
    """A context manager that serves the model from threads of this process.

    `tool_results` are the texts that the agent returned for the commands so far, in order.
    """

    def __init__(self, turns: Sequence[Sequence[str]]) -> None:
        self.tool_results: Sequence[str] = ()
        self._turns = turns
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _build_handler(self))
        self._server.daemon_threads = True
        # Agents close connections at any time.
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, model_format: ModelFormat, body: Json) -> Answer:
        """Return the next command as a tool call, or the final text."""
        tool = model_format.find_shell_tool(body)
        if tool is None:  # a request beside the conversation, such as one for a title
            return Answer(FINAL_TEXT)
        results = model_format.read_tool_results(body)
        if len(results) >= len(self.tool_results):
            self.tool_results = results
        at = 0
        for commands in self._turns:
            if at == len(results):
                return build_calls(tool, commands, at)
            at += len(commands)
        return Answer(FINAL_TEXT, number=len(results))


def _build_handler(model: ScriptedModel) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            path = urlsplit(self.path).path
            raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            model_format = find_format(path)
            if model_format is None:
                self._send(404, "application/json", "{}")
                return
            body = json.loads(raw)
            answer = model.answer(model_format, body)
            if body.get("stream") is True or "stream" in path:
                self._send(200, "text/event-stream", model_format.render_stream(answer))
            else:
                self._send(200, "application/json", json.dumps(model_format.render(answer)))

        def do_GET(self) -> None:
            # Codex first tries a WebSocket, and falls back to HTTP at once only on this status.
            status = 426 if self.headers.get("Upgrade") else 404
            self._send(status, "application/json", "{}")

        def _send(self, status: int, content_type: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
