"""`agent-eval view`: on this machine only, nothing but the report, and it follows a running suite."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
from contextlib import contextmanager

import pytest

from ci_agent_eval.contract.results import Session
from tests.builders import episode, journal_line, junit_case, junit_xml, write_run
from tests.integration.html.browser import chromium, missing_browser
from tests.processes import run_agent_eval, started_python

COMMAND = ("-m", "ci_agent_eval", "view", "agent-eval-report", "--no-browser")
RUNNING = Session(state="running", selected=3)


class Server:
    def __init__(self, process, address):
        self.process, self.address = process, address
        self.port = int(address.rstrip("/").rpartition(":")[2])

    def get(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=800)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer, answer.read().decode()
        finally:
            connection.close()

    @property
    def state(self):
        return json.loads(self.get("/state")[1])


@contextmanager
def viewing(folder, *options):
    with started_python(*COMMAND, *options, cwd=folder, PYTHONUNBUFFERED="1") as process:
        line = process.stdout.readline()
        assert line.startswith("agent-eval-report at http://127.0.0.1:"), line
        yield Server(process, line.split()[2])


@pytest.fixture
def finished(tmp_path):
    (tmp_path / "junit.xml").write_text(junit_xml(junit_case(name="test_shown")))
    run_agent_eval("report", "--junit", "junit.xml", cwd=tmp_path)
    return tmp_path


@pytest.fixture
def running(tmp_path):
    started = journal_line(episode("late"), "started")
    ended = journal_line(episode("early"))
    journal = {"main.jsonl": [started, ended]}
    write_run(tmp_path / "agent-eval-report", session=RUNNING, results=False, journal=journal)
    return tmp_path


def test_the_written_report_is_served_and_ctrl_c_ends_with_0(finished):
    with viewing(finished) as server:
        frame, text = server.get("/")
        assert (frame.status, '<iframe id="report"' in text) == (200, True)
        page, text = server.get("/report.html")
        assert text == (finished / "agent-eval-report/report.html").read_text()
        assert page.headers["Cache-Control"] == "no-store"
        assert server.state["progress"] is None
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait() == 0


def test_a_new_report_has_another_version(finished):
    with viewing(finished) as server:
        before = server.state["version"]
        assert server.state["version"] == before
        page = finished / "agent-eval-report/report.html"
        page.write_text(page.read_text() + "<!-- longer -->")
        assert server.state["version"] != before


@pytest.mark.parametrize("host", ["rebound.example", "rebound.example:{port}", "127.0.0.1", ""])
def test_another_host_is_refused(finished, host):
    with viewing(finished) as server:
        for path in ("/", "/state", "/report.html"):
            answer, text = server.get(path, Host=host.format(port=server.port))
            assert (answer.status, text) == (421, "unknown host")
        assert server.get("/state", Host=f"localhost:{server.port}")[0].status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/verdict.json",
        "/../agent-eval.toml",
        "/%2e%2e/junit.xml",
        "//etc/passwd",
        "/report.html/..",
    ],
)
def test_no_other_file_is_served(finished, path):
    with viewing(finished) as server:
        assert server.get(path)[0].status == 404
        assert server.get("/report.html", method="POST")[0].status == 501


def test_a_link_in_the_place_of_the_report_is_not_followed(finished):
    page = finished / "agent-eval-report/report.html"
    page.unlink()
    page.symlink_to(finished / "junit.xml")
    with viewing(finished) as server:
        assert "test_shown" not in server.get("/report.html")[1]


def test_it_listens_on_loopback_only(finished):
    with viewing(finished) as server:
        assert server.address == f"http://127.0.0.1:{server.port}/"
        with socket.socket() as probe:
            # 127.0.0.2 is this machine, too, but not the address that it listens on.
            assert probe.connect_ex(("127.0.0.2", server.port)) != 0


def test_a_running_suite_shows_its_episodes_and_progress(running):
    folder = running / "agent-eval-report"
    with viewing(running) as server:
        first = server.state
        assert first["progress"].startswith("1/3 episodes · 1 running · ")
        page = server.get("/report.html")[1]
        assert '"early"' in page
        with (folder / "episodes/main.jsonl").open("a") as journal:
            journal.write(journal_line(episode("late")))
        second = server.state
        assert second["progress"].startswith("2/3 episodes · ")
        assert second["version"] != first["version"]
        assert '"late"' in server.get("/report.html")[1]
        assert {path.name for path in folder.iterdir()} == {"session.json", "episodes"}


def test_the_report_of_an_earlier_run_is_not_shown_while_a_suite_runs(finished):
    folder = finished / "agent-eval-report"
    write_run(folder, session=RUNNING, results=False, journal={"main.jsonl": []})
    os.utime(folder / "report.html")  # written anew, by a report on other files
    with viewing(finished) as server:
        assert server.state["progress"].startswith("0/3 episodes")
        assert "test_shown" not in server.get("/report.html")[1]


def test_a_new_run_is_counted_from_its_beginning(running):
    folder = running / "agent-eval-report"
    with viewing(running) as server:
        assert server.state["progress"].startswith("1/3")
        (folder / "episodes/main.jsonl").unlink()
        lines = [journal_line(episode(f"again_{number}")) for number in range(3)]
        (folder / "episodes/main.jsonl").write_text("".join(lines))
        assert server.state["progress"].startswith("3/3")


def test_an_empty_folder_waits_for_a_run(tmp_path):
    (tmp_path / "agent-eval-report").mkdir()
    with viewing(tmp_path) as server:
        assert server.state == {"version": "none", "progress": "waiting for a run"}
        assert "no report yet" in server.get("/report.html")[1]


def test_a_missing_folder_and_a_used_port_are_input_errors(finished):
    done = run_agent_eval("view", "nowhere", "--no-browser", cwd=finished)
    assert (done.returncode, "nowhere" in done.stderr) == (2, True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run_agent_eval(
            "view", "agent-eval-report", "--no-browser", "--port", port, cwd=finished
        )
    assert done.returncode == 2
    assert f"port {port} cannot be used" in done.stderr


def test_the_browser_loads_the_page_again_when_the_suite_ends(running):
    if reason := missing_browser():
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with viewing(running) as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda one: errors.append(one.text) if one.type == "error" else None)
        page.goto(server.address)
        page.get_by_role("status").get_by_text("1/3 episodes").wait_for()
        report = page.frame_locator("#report")
        report.get_by_role("heading", level=1).wait_for()
        episodes = [episode(name) for name in ("early", "late", "last")]
        folder = write_run(running / "agent-eval-report", *episodes)
        run_agent_eval("report", "--results", str(folder), "--report-dir", "new", cwd=running)
        (running / "new/report.html").rename(folder / "report.html")
        report.get_by_text("3 of 3 scenarios").first.wait_for(timeout=60_000)
        assert page.get_by_role("status").is_hidden()
        assert errors == []
        browser.close()
