"""pytest-bdd, pytest-retry, and plugins that record requests, stop clocks or forbid sockets."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

FEATURE = """
Feature: desk
  Scenario: greets
    When the customer says hello
    Then the desk greets

  Scenario: is rude
    When the customer says nothing
    Then the desk greets

  Scenario: is not asked
    When the customer says hello
    Then nobody looks
"""

STEPS = """
import pytest
from pytest_bdd import parsers, scenarios, then, when

pytestmark = pytest.mark.episode
scenarios("desk.feature")

@when(parsers.parse("the customer says {word}"), target_fixture="reply")
def says(episode, word):
    reply = "Hi" if word == "hello" else "What?"
    with episode.turn(word) as turn:
        turn.reply(reply)
    return reply

@then("the desk greets")
def greets(reply):
    assert reply == "Hi"

@then("nobody looks")
async def looks(reply):
    assert reply == "Hi"
"""


def test_asserts_in_steps_of_pytest_bdd_are_evidence_and_others_are_not(suite):
    (suite.root / "desk.feature").write_text(FEATURE, "utf-8")
    suite.write(test_desk=STEPS)
    # A step that nobody awaits is a warning of Python's.
    ran = suite.run("-W", "ignore", plugins=("pytest-bdd",))
    assert ran.outcomes == {
        "test_greets": "passed",
        "test_is_rude": "failed",
        "test_is_not_asked": "error",
    }, ran.output
    assert "no evidence" in ran.reasons["test_is_not_asked"]


RETRIED = """
from itertools import count
import pytest

numbers = count(1)

def talk(episode, reply):
    with episode.turn("Hello") as turn:
        turn.reply(reply)

@pytest.mark.flaky(retries=3, delay=0)
def test_again(episode):
    number = next(numbers)
    talk(episode, str(number))
    if number == 2:
        raise OSError("no network")
    assert number == 3

def test_once(episode):
    talk(episode, "Hi")
    assert 1 == 2
"""


def test_what_pytest_retry_runs_again_are_attempts(suite):
    suite.write(test_retried=RETRIED)
    ran = suite.run(plugins=("pytest-retry",))
    assert ran.junit == {"test_again": "passed", "test_once": "failed"}, ran.output
    again = [e for e in ran.episodes if e["nodeid"].endswith("::test_again")]
    attempts = [(e.get("attempt", 1), e["outcome"]) for e in again]
    assert attempts == [(1, "failed"), (2, "error"), (3, "passed")], ran.output
    assert len(ran.episodes) == 4


class Greeter(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"Hi")

    def log_message(self, *_): ...


RECORDED = """
from urllib.request import urlopen
import pytest

@pytest.mark.vcr
def test_recorded(episode):
    with episode.turn("Hello") as turn:
        with urlopen("http://127.0.0.1:PORT/") as answer:
            reply = answer.read().decode()
        turn.reply(reply)
    assert reply == "Hi"

async def test_beside(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    assert turn
"""


def test_an_episode_is_played_from_a_cassette_of_pytest_recording(suite):
    with HTTPServer(("127.0.0.1", 0), Greeter) as server:
        suite.write(test_recorded=RECORDED.replace("PORT", str(server.server_port)))
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        ran = suite.run("--record-mode=once", plugins=("recording",))
        assert ran.status == 0, ran.output
        serving.join()
    ran = suite.run("--record-mode=none", plugins=("recording",))
    assert ran.status == 0, ran.output
    assert ran.outcomes == {"test_recorded": "passed", "test_beside": "passed"}


STOPPED = """
import threading
from datetime import date

def talk(episode):
    with episode.turn("Hello") as turn:
        threading.Event().wait(0.05)
        turn.reply("Hi")

def test_sync(episode, CLOCK):
    CLOCK.move_to("2020-02-02")
    talk(episode)
    assert date.today().isoformat() == "2020-02-02"

async def test_async(episode, CLOCK):
    CLOCK.move_to("2020-02-02")
    talk(episode)
    assert date.today().isoformat() == "2020-02-02"
"""


@pytest.mark.parametrize("clock", ["freezer", "time_machine"])
def test_latencies_go_on_where_the_clock_is_stopped(suite, clock):
    suite.write(test_stopped=STOPPED.replace("CLOCK", clock))
    ran = suite.run(plugins=(clock,))
    assert ran.outcomes == {"test_sync": "passed", "test_async": "passed"}, ran.output
    for episode in ran.episodes:
        assert episode["trajectory"]["turns"][-1]["latency_ms"] >= 50


OFFLINE = """
import socket
import pytest
from pytest_socket import SocketBlockedError

def talk(episode):
    with episode.turn("Hello") as turn:
        turn.reply("Hi")
    with pytest.raises(SocketBlockedError):
        socket.socket()

def test_sync(episode): talk(episode)
async def test_async(episode): talk(episode)
"""


def test_episodes_run_where_pytest_socket_forbids_the_network(suite):
    suite.write(test_offline=OFFLINE)
    options = ("--disable-socket", "--allow-unix-socket", "-W", "ignore::UserWarning")
    ran = suite.run(*options, plugins=("pytest_socket",))  # newer ones warn as well
    assert ran.outcomes == {"test_sync": "passed", "test_async": "passed"}, ran.output
