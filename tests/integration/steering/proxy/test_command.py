"""`agent-eval steer proxy` as a process: its start, its words, and its end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx2

from tests import llm_wire as wire
from tests.integration.steering.proxy.rig import Rig, answer
from tests.tables import each_row

ON = "--enable-pytest-full-suite-steering"
ASK = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
FULL = wire.chat_body(wire.bash("pytest"))


def command(*options):
    return [sys.executable, "-m", "ci_agent_eval", "steer", "proxy", *options]


def environ():
    keep = {"PATH", "HOME", "LANG", "TMPDIR", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG"}
    return {key: value for key, value in os.environ.items() if key in keep}


@contextmanager
def started(folder, *options):
    """Yield the process and the address it says it listens on."""
    process = subprocess.Popen(
        command("--port", "0", *options),
        cwd=folder,
        env=environ(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("Listening on http://"), line + process.stderr.read()
        yield process, line.split()[2].rstrip(",")
    finally:
        process.kill()
        process.communicate()


def ended(process, number):
    """Send a signal; return the exit code and what was said on stderr."""
    process.send_signal(number)
    _, err = process.communicate(timeout=120)
    return process.returncode, err


def post(url, **more):
    return httpx2.post(f"{url}/v1/chat/completions", json=ASK, trust_env=False, timeout=120, **more)


def refused(folder, *options):
    done = subprocess.run(
        command(*options),
        cwd=folder,
        env=environ(),
        text=True,
        capture_output=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 2, done
    return done.stderr


@each_row(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_it_steers_until_a_signal(tmp_path, number, code):
    with (
        Rig(answer(FULL)) as rig,
        started(tmp_path, "--upstream", rig.upstream.origin, ON) as (process, url),
    ):
        headers = {"authorization": "Bearer SECRET"}
        got = post(url, headers=headers)
        assert got.json() == FULL
        assert not {"server", "date"} & got.headers.keys()
        assert post(url, headers=headers).json() == FULL
        assert [len(asked.json["messages"]) for asked in rig.asked] == [1, 3, 1]
        status, err = ended(process, number)
    assert status == code
    assert f"stopped by {number.name}" in err
    assert "INFO Steering full-suite pytest command: held back a call of 'bash'" in err
    assert "SECRET" not in err
    assert "Traceback" not in err


def test_open_streams_do_not_keep_it_from_ending(tmp_path):
    async def forever(_asked, exchange):
        await exchange.start()
        await exchange.part(b": begun\n\n")
        await exchange.wait_until_disconnected()

    with (
        Rig(forever) as rig,
        started(tmp_path, "--upstream", rig.upstream.origin, ON) as (process, url),
        httpx2.stream("POST", f"{url}/v1/messages", json=ASK, trust_env=False) as got,
    ):
        assert next(got.iter_raw()) == b": begun\n\n"
        status, err = ended(process, signal.SIGTERM)
    assert status == 143
    assert "Traceback" not in err


def test_sessions_in_a_file_outlive_the_process(tmp_path):
    store = str(tmp_path / "sessions.sqlite3")
    with Rig(answer(FULL)) as rig:
        options = ["--upstream", rig.upstream.origin, "--store", store, ON]
        for requests in (2, 3):
            with started(tmp_path, *options) as (_, url):
                assert post(url).json() == FULL
            assert len(rig.asked) == requests


def test_a_store_that_cannot_be_used_stops_nobody(tmp_path):
    store = tmp_path / "store"
    store.write_text("no database, but a text that is long enough to be looked at as one")
    with Rig(answer(FULL)) as rig:
        options = ["--upstream", rig.upstream.origin, "--store", str(store), ON]
        with started(tmp_path, *options) as (process, url):
            assert post(url).json() == FULL
            _, err = ended(process, signal.SIGTERM)
    assert "a call goes through unreviewed: " in err
    assert "--store" in err


def test_without_the_flag_every_answer_passes_and_it_says_so(tmp_path):
    with (
        Rig(answer(FULL)) as rig,
        started(tmp_path, "--upstream", rig.upstream.origin, "--host", "0.0.0.0") as (process, url),
    ):
        assert post(url).json() == FULL
        _, err = ended(process, signal.SIGTERM)
    assert "steering is off" in err
    assert "listens on 0.0.0.0, where other machines reach it" in err


def test_the_environment_and_the_file_count(tmp_path):
    (tmp_path / "agent-eval-steering.yaml").write_text(
        "session:\n  pytest_full_suite_steering_enabled: true\n"
        "  pytest_full_suite_steering_message: Fewer, please.\n"
    )
    with Rig(answer(FULL)) as rig, started(tmp_path, "--upstream", rig.upstream.origin) as (_, url):
        post(url)
    assert rig.asked[1].json["messages"][-1]["content"] == "Fewer, please."


def test_a_port_that_is_taken_is_an_input_error(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        err = refused(tmp_path, "--upstream", "http://127.0.0.1:1", "--port", port)
    assert f"cannot listen on 127.0.0.1:{port}" in err


def test_an_upstream_that_is_none_is_an_input_error(tmp_path):
    err = refused(tmp_path, "--upstream", "https://user:SECRET@x")
    assert "credentials" in err
    assert "SECRET" not in err


def test_an_upstream_that_is_the_proxy_itself_is_an_input_error(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    err = refused(tmp_path, "--upstream", f"http://127.0.0.1:{port}", "--port", str(port))
    assert "own address" in err


def test_a_host_that_is_none_is_an_input_error(tmp_path):
    assert "--host" in refused(tmp_path, "--upstream", "http://x", "--host", "no host")


def test_the_command_is_there_without_its_packages(tmp_path):
    code = (
        "import sys\n"
        "for name in ('httpx2', 'starlette', 'uvicorn', 'tree_sitter'): sys.modules[name] = None\n"
        "import ci_agent_eval.app.cli.steer_proxy\n"
        "from ci_agent_eval.app.cli import main\n"
        "sys.exit(main(['steer', 'proxy', '--help']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ(), capture_output=True, text=True, check=True
    )
    assert "--upstream" in done.stdout
