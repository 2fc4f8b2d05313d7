"""The coding agents of the package index, and one run of each against a scripted model."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ci_agent_eval.steering.doctor.agent_launch import LAUNCHES, LaunchPlace
from ci_agent_eval.steering.doctor.scripted_model import FINAL_TEXT, ScriptedModel
from ci_agent_eval.steering.doctor.throwaway import (
    MESSAGE,
    build_agent_environ,
    build_command,
    make_place,
    run_limited,
)
from ci_agent_eval.steering.hook.agent_settings import AGENT_SETTINGS

NODE = Path(__file__).with_name("node") / "node_modules"
AGENT_EVAL = Path(sys.executable).with_name("agent-eval")

PACKAGES = {
    "claude-code": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "copilot": "@github/copilot",
    "qwen-code": "@qwen-code/qwen-code",
    "opencode": "opencode-ai",
}
# Without their install scripts these two have no `bin`, but their programs are complete.
_PROGRAMS = {
    "claude-code": "@anthropic-ai/claude-code-linux-x64/claude",
    "opencode": "opencode-linux-x64/bin/opencode",
}

FULL, TARGETED = "pytest -q", "pytest -q tests/test_two.py"
TURNS = [[FULL, FULL], [TARGETED], [FULL]]
"""Two equal full runs in one answer, a targeted one, and the full run again."""


def find_version(agent: str) -> str:
    """Return the installed version."""
    return json.loads((NODE / PACKAGES[agent] / "package.json").read_text())["version"]


def find_program(agent: str) -> Path:
    """Return the agent's program."""
    return NODE / _PROGRAMS.get(agent, f".bin/{LAUNCHES[agent].program}")


@dataclass(frozen=True)
class Seen:
    """What an agent did in one run."""

    results: Sequence[str]
    output: str
    other_hosts: Sequence[str]

    def cells(self) -> dict[str, bool]:
        """Return the answers to the questions of the table."""
        results = [*self.results, "", "", "", ""][:4]
        return {
            "held": all(MESSAGE in result for result in results[:2]),
            "goes_on": len(self.results) == 4 and FINAL_TEXT in self.output,
            "targeted": "1 passed" in results[2],
            "insisted": "2 passed" in results[3],
        }


def run_with_hook(agent: str, folder: Path) -> Seen:
    """Run an agent in a project with the installed hook, and trust the project."""
    root = folder / "project"
    root.mkdir()
    words = [str(AGENT_EVAL), "steer", "install", "--for", agent]
    subprocess.run(words, cwd=root, check=True, stdout=subprocess.DEVNULL)
    with ScriptedModel(TURNS) as model:
        return _run(agent, root, model, model.url)


def run_with_proxy(agent: str, folder: Path) -> Seen:
    """Run an agent without a hook in front of the proxy."""
    with ScriptedModel(TURNS) as model, _serve_proxy(model.url) as url:
        return _run(agent, folder, model, url)


def _run(agent: str, root: Path, model: ScriptedModel, url: str) -> Seen:
    launch, settings = LAUNCHES[agent], AGENT_SETTINGS[agent]
    bin_folder = AGENT_EVAL.parent
    path = f"{bin_folder}:/usr/local/bin:/usr/bin:/bin"
    with (
        make_place(launch, settings, root, root / "no-user-settings") as made,
        _serve_recorder() as (recorder, hosts),
    ):
        place = replace(made, url=url)
        _add_project(place, bin_folder)
        command = build_command(find_program(agent), launch, place, trusted=True)
        environ = build_agent_environ(launch, place, path, trusted=True)
        environ = {**environ, "HTTP_PROXY": recorder, "HTTPS_PROXY": recorder}
        _, output = run_limited(command, place.project, environ)
        return Seen(tuple(model.tool_results), output, tuple(sorted(hosts)))


def _add_project(place: LaunchPlace, bin_folder: Path) -> None:
    (place.project / "tests/test_two.py").write_text("def test_two():\n    pass\n")
    # Codex runs commands in a login shell, whose profile sets the PATH anew.
    (place.home / ".bash_profile").write_text(f"export PATH={bin_folder}:$PATH\n")


@contextmanager
def _serve_proxy(upstream: str) -> Iterator[str]:
    words = [str(AGENT_EVAL), "steer", "proxy", "--upstream", upstream, "--port", "0"]
    environ = {"PYTEST_FULL_SUITE_STEERING_MESSAGE": MESSAGE, "PATH": "/usr/bin:/bin"}
    process = subprocess.Popen(
        [*words, "--enable-pytest-full-suite-steering"],
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split("Listening on ")[1].split(",")[0]
        finally:
            process.terminate()
            process.communicate()


@contextmanager
def _serve_recorder() -> Iterator[tuple[str, set[str]]]:
    """Serve an HTTP proxy that refuses all hosts and records their names."""
    hosts: set[str] = set()

    class Handler(BaseHTTPRequestHandler):
        def do_CONNECT(self) -> None:
            hosts.add(self.path)
            self.send_error(502)

        def do_GET(self) -> None:
            self.do_CONNECT()

        def do_POST(self) -> None:
            self.do_CONNECT()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", hosts
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
