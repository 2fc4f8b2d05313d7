"""`agent-eval view`: the last HTML report on loopback, which follows a running suite.

`docs/decisions/0060-progress-from-journals.md` explains the choices.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ci_agent_eval.app.progress import format_progress
from ci_agent_eval.app.report_folder import PAGE_NAME
from ci_agent_eval.contract.results import JOURNAL_DIR, SESSION_NAME, Session
from ci_agent_eval.errors import AgentEvalError, InputError
from ci_agent_eval.runner.progress import JournalTail
from ci_agent_eval.storage.regular_file import open_regular

HOST = "127.0.0.1"
HTML = "text/html; charset=utf-8"

RenderPage = Callable[[], Iterable[str]]
"""Renders the page of the episodes that have ended. Raises AgentEvalError."""

_FRAME = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>agent-eval view</title>
<style>
html, body { height: 100%; margin: 0; color-scheme: light dark }
body { font: 14px/1.4 system-ui, sans-serif; display: flex; flex-direction: column }
#progress { padding: .4rem 1rem; border-bottom: 1px solid GrayText }
#progress[hidden] { display: none }
iframe { flex: 1; border: 0; width: 100% }
</style>
<p id="progress" role="status" hidden></p>
<iframe id="report" title="Report"></iframe>
<script src="/view.js"></script>
"""

_SCRIPT = """\
const report = document.getElementById("report");
const line = document.getElementById("progress");
let shown;
let began = 0;
let next = 0;

// While a suite runs, the page is loaded again every 5 seconds at most, a slow one less often.
report.addEventListener("load", () => {
  next = performance.now() + Math.max(5000, 5 * (performance.now() - began));
});

function show(state) {
  line.hidden = !state.progress;
  line.textContent = state.progress ?? "";
  if (state.version === shown || (state.progress && performance.now() < next)) return;
  began = performance.now();
  next = Infinity;
  if (shown === undefined) report.src = "/report.html" + location.hash;
  else report.contentWindow.location.reload();
  shown = state.version;
}

async function follow() {
  try {
    show(await (await fetch("/state")).json());
  } catch {
    line.hidden = false;
    line.textContent = "agent-eval view has ended";
  }
  setTimeout(follow, 1000);
}

addEventListener("hashchange", () => { report.contentWindow.location.hash = location.hash; });
follow();
"""

_FRAME_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; "
    "frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)


class FollowedReport:
    """The page of a report folder: the written one, or one of the episodes so far."""

    def __init__(
        self,
        folder: Path,
        render: RenderPage,
        *,
        max_cost_usd: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._render = render
        self._max_cost_usd = max_cost_usd
        self._clock = clock
        self._lock = threading.Lock()
        self._run: tuple[int, JournalTail, float] | None = None
        self._rendered: tuple[str, bytes] = ("", b"")

    def read_state(self) -> dict[str, str | None]:
        """Return the page's version, and the progress of a run that has not ended."""
        with self._lock:
            return self._read_state()

    def read_page(self) -> bytes:
        """Return the page; it is rendered anew if an episode has ended since."""
        with self._lock:
            version = self._read_state()["version"] or ""
            if version.startswith("written"):
                with suppress(OSError), open_regular(self._folder / PAGE_NAME) as file:
                    return file.read()
            if self._rendered[0] != version:
                self._rendered = version, self._render_page(version)
            return self._rendered[1]

    def _read_state(self) -> dict[str, str | None]:
        session = _read_session(self._folder)
        is_running = session is not None and session.state == "running"
        page = _stat(self._folder / PAGE_NAME)
        run = _stat(self._folder / SESSION_NAME)
        if page is not None and not is_running and (run is None or page[0] >= run[0]):
            return {"version": f"written {page}", "progress": None}
        started = _stat(self._folder / JOURNAL_DIR)
        if session is None or started is None:
            return {"version": "none", "progress": "waiting for a run"}
        # New journals, which a new run begins with, change the time of their folder.
        if self._run is None or self._run[0] != started[0]:
            self._run = started[0], JournalTail(self._folder), self._clock()
        _, tail, since = self._run
        progress = tail.progress()
        line = format_progress(progress, self._clock() - since, self._max_cost_usd)
        version = f"partial {started[0]} {progress.finished} {session.state}"
        return {"version": version, "progress": line if is_running else None}

    def _render_page(self, version: str) -> bytes:
        if version == "none":
            return b"<!doctype html><title>No report</title><p>There is no report yet."
        try:
            return "".join(self._render()).encode()
        except AgentEvalError as error:
            return f"<!doctype html><title>No report</title><p>{escape(str(error))}".encode()


def _read_session(folder: Path) -> Session | None:
    try:
        with open_regular(folder / SESSION_NAME) as file:
            return Session.model_validate_json(file.read())
    except (OSError, ValueError):  # includes pydantic's ValidationError
        return None


def _stat(path: Path) -> tuple[int, int] | None:
    """Return the time of the last change and the size; None: it does not exist."""
    with suppress(OSError):
        found = path.stat()
        return found.st_mtime_ns, found.st_size
    return None


class ReportServer(ThreadingHTTPServer):
    """Serves a report on loopback; requests under another host's name are refused."""

    daemon_threads = True

    def __init__(self, report: FollowedReport, port: int = 0) -> None:
        """Listen. Raises InputError if the port is in use."""
        try:
            super().__init__((HOST, port), _ReportRequestHandler)
        except OSError as error:
            raise InputError(
                f"port {port} cannot be used ({os.strerror(error.errno or 0)}); choose another "
                "--port, or 0 for any"
            ) from None
        self.report = report

    @property
    def address(self) -> str:
        """The page's address."""
        return f"http://{HOST}:{self.server_port}/"


class _ReportRequestHandler(BaseHTTPRequestHandler):
    server: ReportServer
    server_version = "agent-eval"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with one of the three pages, or with the state."""
        # A page elsewhere could resolve its own name to this machine (DNS rebinding).
        allowed = {f"{name}:{self.server.server_port}" for name in (HOST, "localhost")}
        if self.headers.get("Host", "").lower() not in allowed:
            self._answer(b"unknown host", "text/plain", status=HTTPStatus.MISDIRECTED_REQUEST)
            return
        path = self.path.partition("?")[0]
        if path == "/":
            self._answer(_FRAME.encode(), HTML, policy=_FRAME_POLICY)
        elif path == "/view.js":
            self._answer(_SCRIPT.encode(), "text/javascript; charset=utf-8")
        elif path == "/state":
            state = json.dumps(self.server.report.read_state())
            self._answer(state.encode(), "application/json")
        elif path == f"/{PAGE_NAME}":
            # The page's own policy is in the page.
            self._answer(self.server.report.read_page(), HTML, policy="frame-ancestors 'self'")
        else:
            self._answer(b"not found", "text/plain", status=HTTPStatus.NOT_FOUND)

    def _answer(
        self,
        body: bytes,
        media_type: str,
        *,
        status: HTTPStatus = HTTPStatus.OK,
        policy: str = "default-src 'none'",
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", policy)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        with suppress(OSError):  # the browser has gone
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Print nothing for requests."""
