"""An episode behind the gateway, and subprocesses that ask a model in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ci_agent_eval.model_traffic.formats.message_format import HTTPAnswer
from ci_agent_eval.model_traffic.gateway.server import EpisodeAddress
from ci_agent_eval.model_traffic.recorder import MissingRecordingError, ModelCall, TrafficRecorder
from tests.model_server import ModelServer
from tests.model_server.script import call
from tests.processes import SECONDS

CLIENT = Path(__file__).with_name("client.py")
APIS = ("openai-chat", "openai-responses", "anthropic-messages")
ALL = (*APIS, *(f"{api}+stream" for api in APIS))
"""What the client can be asked for."""
STEPS = ({"text": "Let me look.", "tool_calls": [call("get_balance", account="a")]},)


def provider_environ(server: ModelServer) -> dict[str, str]:
    """The variables of a user whose providers are the scripted server."""
    return {
        "OPENAI_BASE_URL": server.base_url,
        "OPENAI_API_KEY": "sk-secret-of-openai",
        "ANTHROPIC_BASE_URL": server.base_url.removesuffix("/v1"),
        "ANTHROPIC_API_KEY": "sk-secret-of-anthropic",
    }


def new_recorder(**options: Any) -> TrafficRecorder:
    return TrafficRecorder(time.monotonic, **options)


def child_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a subprocess: nothing leaks in."""
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**inherited, **environ}


@contextmanager
def started(address: EpisodeAddress, *names: str) -> Iterator[subprocess.Popen[str]]:
    """Start the client in an episode; it never outlives the block."""
    with subprocess.Popen(
        [sys.executable, str(CLIENT), *names],
        env=child_environ({**address.environ, **address.build_environment()}),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(environ: Mapping[str, str], *names: str) -> dict[str, list[Any]]:
    """Run the client, and return what it got for each name."""
    done = subprocess.run(
        [sys.executable, str(CLIENT), *names],
        env=child_environ(environ),
        stdout=subprocess.PIPE,
        timeout=SECONDS,
        check=True,
    )
    got: dict[str, list[Any]] = {name: [] for name in names}
    for line in done.stdout.splitlines():
        name, value = json.loads(line)
        got[name].append(value)
    return got


def ask_through(address: EpisodeAddress, *names: str) -> dict[str, list[Any]]:
    """Run the client in an episode."""
    return ask({**address.environ, **address.build_environment()}, *names)


@dataclass
class Tape:
    """A player that stores answers and gives them again, by the canonical key."""

    is_replay: bool = False
    answers: dict[str, list[HTTPAnswer]] = field(default_factory=dict)

    def find_answer(self, call: ModelCall) -> HTTPAnswer | None:
        if not self.is_replay:
            return None
        found = self.answers.get(call.format.build_key(call.url, call.body))
        if not found:
            raise MissingRecordingError("nothing recorded for this request")
        return found.pop(0)

    def store(self, call: ModelCall) -> None:
        assert call.status is not None
        kept: Sequence[bytes] = tuple(call.chunks)
        headers = {"content-type": call.headers["content-type"]}
        answer = HTTPAnswer(call.status, headers, tuple(kept))
        self.answers.setdefault(call.format.build_key(call.url, call.body), []).append(answer)
