"""The coding agents of the package index, and one run of each against a scripted model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ci_agent_eval.steering.hook.agents import AGENTS
from ci_agent_eval.steering.settings_loader import MESSAGE_VARIABLE
from tests.steering_agents.launches import LAUNCHES, LaunchPlace
from tests.steering_agents.scripted_model import FINAL_TEXT, ScriptedModel

NODE = Path(__file__).parents[1] / "node_modules"
AGENT_EVAL = Path(sys.executable).with_name("agent-eval")
TIME_LIMIT_S = 300.0
"""Seconds until an agent that does not end is killed."""
MESSAGE = "agent-eval holds this full run."
"""The steering message of a run, which shows in a call's result that it was held."""

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
    with ScriptedModel(TURNS) as model:
        place = _make_place(agent, folder, model.root_url)
        words = [str(AGENT_EVAL), "steer", "install", "--for", agent]
        subprocess.run(words, cwd=place.project, check=True, stdout=subprocess.DEVNULL)
        return _run(agent, place, model)


def run_with_proxy(agent: str, folder: Path) -> Seen:
    """Run an agent without a hook in front of the proxy."""
    with ScriptedModel(TURNS) as model, _serve_proxy(model.root_url) as url:
        return _run(agent, _make_place(agent, folder, url), model)


def _run(agent: str, place: LaunchPlace, model: ScriptedModel) -> Seen:
    launch = LAUNCHES[agent]
    command = [
        str(find_program(agent)),
        *launch.build_arguments(place),
        *launch.build_trust(place),
    ]
    with _serve_recorder() as (recorder, hosts):
        environ = {
            **_build_environ(place.home, recorder),
            **launch.build_environ(place),
            **launch.trust_environ,
        }
        output = _run_limited(command, place.project, environ)
        return Seen(tuple(model.tool_results), output, tuple(sorted(hosts)))


def _make_place(agent: str, folder: Path, url: str) -> LaunchPlace:
    """Make a home with the settings of a launch, and a project with two tests."""
    place = LaunchPlace(url, folder / "home", folder / "project")
    (place.project / "tests").mkdir(parents=True)
    for name in ("one", "two"):
        text = f"def test_{name}():\n    pass\n"
        (place.project / f"tests/test_{name}.py").write_text(text)
    settings = place.home / AGENTS[agent].user_folder / "settings.json"
    settings.parent.mkdir(parents=True)
    if LAUNCHES[agent].user_settings:
        settings.write_text(json.dumps(LAUNCHES[agent].user_settings))
    # Codex runs commands in a login shell, whose profile sets the PATH anew.
    (place.home / ".bash_profile").write_text(f"export PATH={AGENT_EVAL.parent}:$PATH\n")
    return place


def _build_environ(home: Path, proxy: str) -> dict[str, str]:
    """Return an environment that leads to the home, and to no other host."""
    return {
        "PATH": f"{AGENT_EVAL.parent}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "HTTP_PROXY": proxy,
        "HTTPS_PROXY": proxy,
        "NO_PROXY": "127.0.0.1,localhost",
        MESSAGE_VARIABLE: MESSAGE,
    }


def _run_limited(command: Sequence[str], folder: Path, environ: Mapping[str, str]) -> str:
    """Run a command with all processes that it starts; return its output."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=TIME_LIMIT_S)
        except subprocess.TimeoutExpired as error:
            output = error.output or b""
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return output.decode("utf-8", "replace")


@contextmanager
def _serve_proxy(upstream: str) -> Iterator[str]:
    words = [str(AGENT_EVAL), "steer", "proxy", "--upstream", upstream, "--port", "0"]
    environ = {MESSAGE_VARIABLE: MESSAGE, "PATH": "/usr/bin:/bin"}
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
