"""Episodes beside one another, and what is left when they are over."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from ci_agent_eval.model_traffic.gateway.server import serve_episode
from tests.integration.model_traffic.gateway.rig import (
    child_environ,
    new_recorder,
    provider_environ,
    started,
)
from tests.model_server import ModelServer, Step
from tests.processes import SECONDS

EPISODES = 20
CALLS = 3
CHILD = """
import json, os, sys, urllib.request
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
for _ in range(int(sys.argv[2])):
    messages = [{"role": "user", "content": sys.argv[1]}]
    body = json.dumps({"model": "gpt-5-mini", "messages": messages}).encode()
    asked = urllib.request.Request(url, body, {"content-type": "application/json"})
    print(json.load(urllib.request.urlopen(asked))["choices"][0]["message"]["content"])
"""


def test_twenty_episodes_at_once_keep_their_calls_apart():
    everyone = threading.Barrier(EPISODES)

    def run(number: int) -> None:
        recorder, prompt = new_recorder(), f"prompt-{number:02}."
        with serve_episode(recorder, provider_environ(server)) as address:
            everyone.wait()
            done = subprocess.run(
                [sys.executable, "-c", CHILD, prompt, str(CALLS)],
                env=child_environ(address.build_environment()),
                stdout=subprocess.PIPE,
                text=True,
                check=True,
            )
        assert done.stdout.splitlines() == [f"I heard {prompt}"] * CALLS
        assert [call.request.messages[-1].text for call in recorder.calls] == [prompt] * CALLS
        assert [call.answer.text for call in recorder.calls] == [f"I heard {prompt}"] * CALLS

    with ModelServer(["I heard {prompt}"]) as server, ThreadPoolExecutor(EPISODES) as pool:
        list(pool.map(run, range(EPISODES)))
        assert len(server.requests) == EPISODES * CALLS


def test_requests_that_are_open_at_the_end_of_their_episode_end_with_it():
    recorder = new_recorder()
    with (
        ModelServer([Step(hang=True)]) as server,
        serve_episode(new_recorder(), {}),  # the gateway goes on
        ExitStack() as clients,
    ):
        with serve_episode(recorder, provider_environ(server)) as address:
            clients.enter_context(started(address, "openai-chat"))
            server.wait_for_requests(1, timeout_s=SECONDS)
            assert [call.state for call in recorder.calls] == ["open"]
        assert [call.state for call in recorder.calls] == ["failed"]


PROGRAM = """
import socket, sys, threading, time, httpx2
from ci_agent_eval.model_traffic.gateway.server import serve_episode
from ci_agent_eval.model_traffic.recorder import TrafficRecorder

body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
for _ in range(3):
    recorder = TrafficRecorder(time.monotonic)
    with serve_episode(recorder, {"OPENAI_BASE_URL": sys.argv[1]}) as address:
        url = address.url + "/openai/v1/chat/completions"
        assert httpx2.post(url, json=body).status_code == 200
        host = address.url.split("/")[2].split(":")
        left = socket.create_connection((host[0], int(host[1])))
        left.sendall(b"POST /e/ HTTP/1.1\\r\\n")
    left.close()
    assert [call.state for call in recorder.calls] == ["complete"]
print([thread.name for thread in threading.enumerate()])
"""


def test_nothing_warns_and_a_half_sent_request_holds_nothing_up():
    with ModelServer(["Hello."]) as server:
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", PROGRAM, server.base_url],
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout.replace("'", '"')) == ["MainThread"]
