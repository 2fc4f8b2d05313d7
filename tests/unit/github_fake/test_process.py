"""The fake in threads, and as a process of its own."""

import http.client
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.unit.github_fake.rig import COMMENTS, HEAD, REPO


def test_the_process_serves_its_configuration_and_dumps_its_state(tmp_path):
    config = {
        "tokens": [{"token": "t", "login": "mona"}],
        "repos": [
            {
                "full_name": "octo/shop",
                "issues": [3],
                "pulls": [{"number": 7, "head_sha": HEAD}],
                "comments": [{"issue": 7, "author": "octocat", "body": "hello"}],
                "artifacts": [{"run_id": 1, "name": "report"}],
            }
        ],
        "faults": [{"kind": "server_error", "on": "POST *"}],
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    port_file, state_file = tmp_path / "port", tmp_path / "state.json"
    root = Path(__file__).parents[3]
    arguments = ["--port-file", port_file, "--state-file", state_file]
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.github_fake",
            *arguments,
            "--config",
            tmp_path / "config.json",
        ],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        port = int(process.stdout.readline().rpartition(":")[2])
        assert int(port_file.read_text()) == port
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        headers = {"Authorization": "token t"}
        for expected in (500, 201):
            connection.request("POST", COMMENTS, '{"body": "hi"}', headers)
            response = connection.getresponse()
            response.read()
            assert response.status == expected
        connection.request("GET", "/_fake/state")
        state = json.loads(connection.getresponse().read())
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(600) == 0
    authors = [comment["author"] for comment in state["repositories"][REPO]["comments"]]
    assert authors == ["octocat", "mona"]
    assert [request["status"] for request in state["requests"]] == [500, 201]
    assert state["violations"] == []
    assert json.loads(state_file.read_text()) == state
