"""The fake in threads, and as a process of its own."""

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

from tests.github_fake import FakeGitHub
from tests.unit.github_fake.rig import COMMENTS, HEAD, REPO, RUNS, raw, run_body


def test_two_fakes_answer_the_same_bytes():
    def story():
        with FakeGitHub() as fake:
            fake.token("t")
            fake.add_repo(REPO)
            fake.add_pull(REPO, 7, HEAD)
            raw(fake, "POST", COMMENTS, {"body": "x"}, token="t")
            raw(fake, "POST", RUNS, run_body(), token="t")
            return json.dumps(fake.state())

    assert story() == story()


def test_concurrent_writers_get_ids_of_their_own(fake):
    def write(number):
        raw(fake, "POST", COMMENTS, {"body": f"{number}"})

    threads = [threading.Thread(target=write, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    comments = fake.comments(REPO, 7)
    assert sorted(int(c.body) for c in comments) == list(range(20))
    assert len({c.id for c in comments}) == 20


def test_closing_leaves_no_thread_and_no_open_socket():
    before = threading.active_count()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        with FakeGitHub() as fake:
            fake.token("t")
            fake.add_repo(REPO)
            idle = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=120)
            idle.request("GET", "/rate_limit")
            idle.getresponse().read()
        idle.close()
    assert threading.active_count() == before


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
