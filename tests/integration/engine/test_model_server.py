"""The model server itself: what other tests rely on."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from urllib.error import HTTPError

import pytest

from tests.model_server import ModelServer


def ask(base_url, *messages):
    body = {"model": "m", "messages": [{"role": r, "content": c} for r, c in messages]}
    request = urllib.request.Request(
        f"{base_url}/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


def test_conversations_have_scripts_of_their_own():
    script = {"alpha": ["a1", "a2"], "alphabet": ["longer"], "*": ["any {prompt}"]}
    with ModelServer(script) as server:
        assert ask(server.base_url, ("user", "alpha")) == "a1"
        after = (("user", "alpha"), ("assistant", "a1"), ("user", "and?"))
        assert ask(server.base_url, *after) == "a2"
        assert ask(server.base_url, ("user", "the alphabet")) == "longer"
        assert ask(server.base_url, ("user", "beta")) == "any beta"


def test_a_fault_comes_before_the_answer_it_delays_and_a_script_can_end():
    with ModelServer([429, 500, "hi"]) as server:
        for status in (429, 500):
            with pytest.raises(HTTPError, match=str(status)):
                ask(server.base_url, ("user", "x"))
        assert ask(server.base_url, ("user", "x")) == "hi"
        with pytest.raises(HTTPError, match="418"):
            ask(server.base_url, ("user", "x"), ("assistant", "hi"))


def test_what_hangs_goes_on_when_released_and_is_counted():
    with ModelServer([{"hang": True, "text": "at last"}]) as server, ThreadPoolExecutor(3) as pool:
        asking = [pool.submit(ask, server.base_url, ("user", "x")) for _ in range(3)]
        server.wait_for_requests(3)
        assert not any(one.done() for one in asking)
        server.release()
        assert [one.result(20) for one in asking] == ["at last"] * 3
        assert server.peak == 3


def test_it_runs_as_a_process_of_its_own(tmp_path):
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["hello {prompt}"]))
    command = [sys.executable, "-m", "tests.model_server", str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            base_url = json.loads(process.stdout.readline())["base_url"]
            assert ask(base_url, ("user", "you")) == "hello you"
            with urllib.request.urlopen(base_url.replace("/v1", "/stats"), timeout=120) as stats:
                assert json.load(stats) == {"requests": 1, "open": 0, "peak": 1}
        finally:
            process.terminate()
