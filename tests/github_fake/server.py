"""The fake on a loopback socket, as a context manager."""

from __future__ import annotations

import json
import socket
import sys
import threading
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from types import TracebackType
from typing import Any, Self

from tests.github_fake.api import GHES_PREFIX, Api, Incoming, Request
from tests.github_fake.faults import Faults
from tests.github_fake.routes import Reply
from tests.github_fake.state import (
    Artifact,
    CheckRun,
    Comment,
    Pull,
    Repository,
    WorkflowRun,
    World,
)

STATE_PATH = "/_fake/state"
"""Address of the state dump; outside the API, neither logged nor checked."""

_HEADERS = {
    "Content-Type": "application/json; charset=utf-8",
    "X-GitHub-Media-Type": "github.v3; format=json",
    "x-ratelimit-limit": "5000",
    "x-ratelimit-remaining": "4999",
    "x-ratelimit-reset": "1767229200",
    "x-ratelimit-resource": "core",
}


class _Handler(BaseHTTPRequestHandler):
    """One connection; every method goes the same way."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def _serve(self) -> None:
        payload = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path == STATE_PATH:
            self._send(Reply(200, self.server.dump()))
            return
        asked = Incoming.parse(
            self.command,
            self.path,
            self.headers.get("Host", ""),
            authorization=self.headers.get("Authorization", ""),
            payload=payload,
        )
        reply = self.server.api.exchange(asked)
        if reply is None:
            self.close_connection = True
        else:
            self._send(reply)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 - its names

    def _send(self, reply: Reply) -> None:
        """Write the reply in one piece, so that no packet waits for an acknowledgement."""
        body = _encoded(reply.body)
        headers = {**_HEADERS, **reply.headers, "Content-Length": str(len(body))}
        if reply.is_cut:
            body, self.close_connection = body[: len(body) // 2], True
        lines = [f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        self.wfile.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the request log is there."""


def _encoded(body: Any) -> bytes:
    """Return an archive as it is, nothing as nothing, and all else as JSON."""
    if isinstance(body, bytes):
        return body
    return b"" if body is None else json.dumps(body, ensure_ascii=True).encode()


class _Server(ThreadingTCPServer):
    """Knows its open connections, so that closing leaves no thread behind."""

    allow_reuse_address = True
    daemon_threads = False
    request_queue_size = 64

    def __init__(self, address: tuple[str, int], api: Api) -> None:
        super().__init__(address, _Handler)
        self.api = api
        self.connections: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self.connections.discard(request)
        super().shutdown_request(request)

    def dump(self) -> dict[str, Any]:
        """Return all that a test may ask about, at one moment."""
        with self.api.lock:
            repositories = self.api.world.repositories
            return {
                "repositories": {name: _everything(repo) for name, repo in repositories.items()},
                "requests": [asdict(request) for request in self.api.requests],
                "violations": list(self.api.violations),
            }

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Record a crash of ours as a violation; a client that went away is none."""
        error = sys.exception()
        if not isinstance(error, ConnectionError):
            self.api.violations.append(f"the fake itself failed: {error!r}")

    def hang_up(self) -> None:
        """Close every open connection, which ends its thread."""
        for connection in self.connections.copy():
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


def _everything(repo: Repository) -> dict[str, Any]:
    return {
        "comments": [asdict(one) for one in repo.comments.values()],
        "check_runs": [asdict(run) for run in repo.check_runs.values()],
    }


class FakeGitHub:
    """A stateful GitHub API on loopback that checks every request and every reply of its own.

    Use it as a context manager. Empty at first: add tokens, repositories and pull requests.
    ``violations`` lists each request and reply that broke GitHub's description or a documented
    limit; tests assert that it stays empty. ``validate=False`` leaves the description out, for
    benchmarks; the documented limits stay.
    """

    def __init__(self, *, validate: bool = True) -> None:
        self._api = Api(validate=validate)
        self._server = _Server(("127.0.0.1", 0), self._api)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.hang_up()
        self._server.server_close()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The API's address as ``GITHUB_API_URL`` gives it on github.com: no prefix."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def ghes_url(self) -> str:
        """The API's address as an enterprise server gives it."""
        return f"{self.url}{GHES_PREFIX}"

    @property
    def faults(self) -> Faults:
        """The script of faults."""
        return self._api.faults

    @property
    def requests(self) -> list[Request]:
        """Every request so far, in order."""
        return self._api.requests

    @property
    def writes(self) -> list[Request]:
        """Every request so far that asked for a change, refused ones too."""
        return [request for request in self.requests if request.is_write]

    @property
    def violations(self) -> list[str]:
        """Each breach of the description or of a documented limit, ours and the client's."""
        return self._api.violations

    @property
    def world(self) -> World:
        """The state itself."""
        return self._api.world

    def token(self, token: str, login: str = "github-actions[bot]", **may: bool) -> None:
        """Accept ``token``, which may do what :class:`Token` says.

        A ``[bot]`` login is an app's installation token: refused GET /user, and the only kind that
        may write check runs.
        """
        self.world.add_token(token, login, **may)

    def add_repo(self, full_name: str, **fields: Any) -> Repository:
        """Create ``owner/name``; ``fields`` are those of :class:`Repository`."""
        return self.world.add_repository(full_name, **fields)

    def add_pull(self, full_name: str, number: int, head_sha: str, **fields: Any) -> Pull:
        """Create a pull request; ``fields`` are those of :class:`Pull`."""
        return self.world.add_pull(full_name, number, head_sha, **fields)

    def add_comment(self, full_name: str, issue: int, author: str, body: str) -> Comment:
        """Create somebody's comment."""
        return self.world.add_comment(full_name, issue, author, body)

    def add_workflow_run(self, full_name: str, **fields: Any) -> WorkflowRun:
        """Create a run of a workflow; ``fields`` are those of :class:`WorkflowRun`."""
        return self.world.add_workflow_run(full_name, **fields)

    def add_artifact(self, full_name: str, run_id: int, name: str, **fields: Any) -> Artifact:
        """Create an artifact of a workflow run; ``fields`` are those of :class:`Artifact`."""
        return self.world.add_artifact(full_name, run_id, name, **fields)

    def comments(self, full_name: str, issue: int) -> list[Comment]:
        """Return the comments of an issue or pull request, oldest first."""
        stored = self.world.repositories[full_name].comments.values()
        return [comment for comment in stored if comment.issue == issue]

    def check_runs(self, full_name: str) -> list[CheckRun]:
        """Return the check runs of a repository, oldest first."""
        return list(self.world.repositories[full_name].check_runs.values())
