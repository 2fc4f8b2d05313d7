"""`make bench-peers`: what is pure of it, and the two processes that measure."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.peers import tree
from benchmarks.peers.capacity import ask, model_server
from benchmarks.peers.episodes import Row, ratio, scaled, without_delay
from benchmarks.peers.growth import Growth, Note, kept_kb
from benchmarks.peers.junit import FLOOR, Parsed
from benchmarks.peers.junit import OURS as OUR_PARSER
from benchmarks.peers.model import Load, parse_request
from benchmarks.peers.page import Measured, section
from benchmarks.peers.runners import BOUND, OURS, OURS_TWO, RUNNERS, Runner
from benchmarks.peers.runs import MAX_ERROR, Failure, Figure, first_error, median

PEER = Runner("a peer", "peer", ("peer",))


def figure(seconds: float, cpu_seconds: float = 1.0) -> Figure:
    return Figure(seconds, cpu_seconds, peak_mb=70.0, processes=1, calls_at_once=50)


def row(runner: Runner, seconds: float, startup: float = 1.0) -> Row:
    return Row(runner, figure(startup, 0.5), figure(seconds + startup))


def growing(episodes: int, kept: int, cpu_ms: float = 5.0) -> Growth:
    """A run that keeps so many bytes of each, after a start that keeps much."""
    points = [episodes * n // 20 for n in range(21)]
    notes = [
        Note(n, 80_000_000 + 5_000_000 * (n > 0) + n * kept, 10 + n / 100, n * cpu_ms / 1000)
        for n in points
    ]
    return Growth(episodes, seconds=12.0, peak_mb=90.0, notes=notes)


def measured(**changed: object) -> Measured:
    fast = [row(BOUND, 2.0), row(OURS, 2.1), row(OURS_TWO, 1.2), row(PEER, 4.0)]
    found = Measured(
        machine="a machine",
        load=0.1,
        versions="Versions: peer 1.0.",
        capacities=[],
        episodes=200,
        fast=fast,
    )
    return replace(found, **changed)


def line(text: str, beginning: str) -> str:
    return next(x for x in text.splitlines() if x.startswith(f"| {beginning}"))


def test_the_start_up_is_taken_away_before_times_are_held_against_each_other():
    text = section(measured())

    assert line(text, "a peer").startswith("| a peer | 1.00 s | 4.00 s | 2.00 × | 1.90 × |")
    assert (
        line(text, "at most 1.1 ×")
        == "| at most 1.1 × the bound at concurrency 50 | 1.05 × | met |"
    )


def test_a_peer_that_is_faster_is_named():
    fast = [row(BOUND, 2.0), row(OURS, 2.1), row(OURS_TWO, 1.2), row(PEER, 2.05)]

    assert "**missed**: a peer 2.05 s" in line(section(measured(fast=fast)), "less time than")
    assert line(section(measured()), "less time than").endswith("| met |")


def test_a_peer_that_fails_is_shown_with_its_error():
    failing = Row(PEER, Failure("exit code 1: no such fixture"), Failure("exit code 1: `x`"))
    text = section(measured(fast=[row(BOUND, 2.0), row(OURS, 2.1), row(OURS_TWO, 1.2), failing]))

    assert "**failed**" in line(text, "a peer")
    assert "- a peer: `exit code 1: 'x'`" in text


def test_ours_failing_is_no_target_met():
    broken = Row(OURS, figure(1), Failure("exit code 4: unrecognized arguments"))
    text = section(measured(fast=[row(BOUND, 2.0), broken, row(OURS_TWO, 1.2)]))

    assert line(text, "at most 1.1 ×").endswith("| not measured | **missed** |")
    assert line(text, "less time than").endswith("| not measured | **missed** |")


def test_a_start_up_that_took_longer_than_the_episodes_gives_no_ratio():
    assert ratio(row(OURS, -0.3), row(BOUND, 2.0)) is None
    assert ratio(row(OURS, 2.0), row(BOUND, -0.3)) is None
    assert ratio(row(OURS, 2.2), row(BOUND, 2.0)) == pytest.approx(1.1)


def test_the_time_of_a_share_of_the_episodes_is_multiplied_and_said():
    slow = scaled(row(PEER, 10.0), episodes=200, run=5)

    assert slow.seconds == pytest.approx(400.0)
    rows = [row(BOUND, 8.0), row(OURS, 8.0), slow]
    assert "their time is taken 40 times" in section(measured(slow=rows))


def test_two_processes_are_held_against_the_bound_on_many_episodes():
    many = [row(BOUND, 20.0), row(OURS, 21.0), row(OURS_TWO, 14.0)]
    text = section(measured(many=many, many_episodes=2000))

    assert line(text, "`-n 2` below").endswith("on 2,000 episodes | 0.70 × | **missed** |")


def test_the_delay_of_the_model_is_no_start_up():
    assert without_delay(figure(1.5), 0.05) == figure(1.4)
    assert without_delay(Failure("x"), 0.05) == Failure("x")


def test_what_each_episode_keeps_is_the_slope_once_the_process_has_settled():
    assert kept_kb(growing(20_000, kept=12_000).notes) == pytest.approx(12.0)


def test_growth_is_held_against_its_limits():
    fine = section(measured(growth=[growing(200, 3000), growing(20_000, 3000)]))
    assert line(fine, "memory grows").endswith("| 3.0 KB | met |")
    assert line(fine, "an episode costs the same").endswith("| 1.00 × | met |")

    worse = section(measured(growth=[growing(200, 3000), growing(20_000, 25_000, cpu_ms=9)]))
    assert line(worse, "memory grows").endswith("| 25.0 KB | **missed** |")
    assert line(worse, "an episode costs the same").endswith("| 1.80 × | **missed** |")


def test_parsers_are_held_against_the_floor_and_ours():
    parsed = [Parsed(FLOOR, figure(0.1)), Parsed(OUR_PARSER, figure(0.4))]
    text = section(measured(parsed=parsed, junit_files=100))

    assert "## JUnit: 100,000 cases in 100 files" in text
    assert line(text, "ours | 0.40 s").startswith("| ours | 0.40 s | 4.0 × | 1.0 × |")


def test_the_median_of_runs_keeps_the_highest_peak_and_any_failure():
    low, high = figure(1.0), replace(figure(3.0), peak_mb=99.0)

    assert median([low, high, figure(2.0)]) == replace(figure(2.0), peak_mb=99.0)
    assert median([low, Failure("why")]) == Failure("why")


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("x\nE       The fixture is not there.\n>  more\nERROR a\n", "The fixture is not there."),
        (
            "Traceback:\n  File\ndeepeval.errors.MissingError: none\nend\n",
            "deepeval.errors.MissingError: none",
        ),
        ("\x1b[31mnothing of the kind\x1b[0m\n\n", "nothing of the kind"),
        ("", "it printed nothing"),
        ("y" * 999, "y" * MAX_ERROR),
    ],
)
def test_the_line_that_says_what_went_wrong(log, said):
    assert first_error(log) == said


def test_every_runner_has_a_name_of_its_own_and_a_bound_that_is_measured():
    names = [runner.name for runner in RUNNERS]

    assert len(set(names)) == len(names)
    assert {runner.held_to for runner in RUNNERS} - {"bound"} <= set(names)


def test_requests_are_taken_from_what_arrived_one_after_another():
    request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"

    assert parse_request(request[:-1]) is None
    assert parse_request(request + b"GET ") == ("/v1/chat/completions", b"{}", b"GET ")


def test_the_load_begins_anew_once_it_was_taken():
    load = Load()
    load.begin()
    load.begin()
    load.open -= 1

    assert json.loads(load.taken()) == {"calls": 2, "peak": 2, "open": 1}
    assert json.loads(load.taken()) == {"calls": 0, "peak": 1, "open": 1}


def test_the_model_server_answers_many_at_once():
    with model_server(delay_ms=20) as server:
        asyncio.run(ask(server.url, calls=200, connections=50))
        load = server.taken_load()

    assert load["calls"] == 200
    assert load["peak"] > 1


WORK = """
import subprocess, sys, time
held = bytearray(80 * 2**20)
subprocess.Popen(
    [sys.executable, "-c", "import time; x = bytearray(80 * 2**20); t = time.process_time\\nwhile t() < 0.5: pass"],
    start_new_session=True,
)
while time.process_time() < 0.5: pass
sys.exit(7)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_a_tree_is_measured_with_what_it_leaves_behind(tmp_path):
    out = tmp_path / "taken.json"
    command = [sys.executable, "-I", tree.__file__, str(out), "60", sys.executable, "-c", WORK]
    subprocess.run(command, check=True)

    taken = json.loads(out.read_text())
    assert (taken["status"], taken["timed_out"]) == (7, False)
    # Half a second each, of the command and of the orphan that outlives it.
    assert taken["cpu_seconds"] >= 1.0
    # Memory and processes are sampled; only what the kernel itself keeps is sure to be seen.
    assert taken["peak_mb"] > 80


HOLD = "import sys; held = bytearray(80 * 2**20); print('ready', flush=True); sys.stdin.read()"


class AfterOneLook(threading.Event):
    """Is set as soon as it has been waited for once."""

    def wait(self, timeout=None):
        was_set = self.is_set()
        self.set()
        return was_set


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_a_sample_adds_up_the_memory_of_all_processes():
    taken = tree.Taken()
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    holders = [subprocess.Popen([sys.executable, "-c", HOLD], **pipes) for _ in range(2)]
    for holder in holders:
        assert holder.stdout.readline() == b"ready\n"
    tree.look(taken, AfterOneLook())
    for holder in holders:
        holder.communicate()

    assert taken.processes >= 2
    assert taken.peak_mb > 160


@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")
def test_a_tree_that_does_not_end_is_ended(tmp_path):
    out = tmp_path / "taken.json"
    sleeper = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import signal; signal.pause()'])"
    command = [sys.executable, "-I", tree.__file__, str(out), "1", sys.executable, "-c", sleeper]
    subprocess.run(command, check=True)

    assert json.loads(out.read_text())["timed_out"] is True


def test_the_suites_are_all_there():
    suites = [Path(word) for runner in RUNNERS for word in runner.command if "/suites/" in word]

    assert suites
    assert all(suite.is_file() for suite in suites)
